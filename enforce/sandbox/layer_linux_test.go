package sandbox_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// tryPlace is place with a policy whose command writes to a layer. The test is skipped where that can't be.
func tryPlace(t *testing.T) (p *policy.Policy, dir string) {
	t.Helper()
	p = place(t)
	p.FS.Writes.Value = "try"
	_, err := sandbox.Run(context.Background(), p, shell("true"))
	if gap, is := errors.AsType[*sandbox.GapError](err); is {
		testkit.Lacks(t, testkit.UserNS, gap)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir, err = os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return p, dir
}

// try runs a script, and returns its layer.
func try(t *testing.T, p *policy.Policy, script string) *sandbox.Layer {
	t.Helper()
	r, err := sandbox.Run(context.Background(), p, shell(script))
	if err != nil || r.ExitCode() != 0 || r.Layer == nil {
		t.Fatalf("status %d, layer %v, %v", r.ExitCode(), r.Layer, err)
	}
	return r.Layer
}

// has fails unless a file in the working directory has this text; "" means that there is no such file.
func has(t *testing.T, name, want string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if string(b) != want || (want == "") != errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s has %q (%v), not %q", name, b, err, want)
	}
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestLayer reviews what a command wrote as an editor would: changes as data, a difference, a part of it applied,
// all of it taken back, and thrown away.
func TestLayer(t *testing.T) {
	p, dir := tryPlace(t)
	put(t, "old", "one\n")
	l := try(t, p, "echo two >>old; mkdir new; echo x >new/a; echo y >new/.envrc; ln -s /etc/passwd out")
	has(t, "old", "one\n")
	got := make(map[string]sandbox.LayerChange)
	for _, c := range l.Changes {
		got[strings.TrimPrefix(c.Path, dir+"/")] = c
	}
	if len(got) != 5 || got["old"].Op != "change" || got["old"].Size != 8 || got["new/a"].Op != "add" || !got["new"].Mode.IsDir() {
		t.Errorf("%+v", got)
	}
	if l.Clean || len(got["new/.envrc"].Look) != 1 || len(got["out"].Look) != 1 || got["new/a"].Look != nil {
		t.Errorf("what needs a look: %+v", got)
	}
	var diff strings.Builder
	if err := l.Diff(&diff, dir+"/old"); err != nil || !strings.Contains(diff.String(), "\n+two\n") || strings.Contains(diff.String(), "+x") {
		t.Errorf("%v: %s", err, diff.String())
	}
	diff.Reset()
	if err := l.Diff(&diff, "/", dir); err != nil || strings.Count(diff.String(), "\n+x\n") != 2 {
		t.Errorf("%v: %s", err, diff.String())
	}
	diff.Reset()
	if err := l.Diff(&diff); err != nil || !strings.Contains(diff.String(), "\n+two\n") || !strings.Contains(diff.String(), "\n+x\n") {
		t.Errorf("%v: %s", err, diff.String())
	}
	for _, wrong := range []string{dir + "/none", "old", dir + "2"} {
		if err := l.Diff(&diff, wrong); err == nil {
			t.Errorf("a difference at %s", wrong)
		}
		if _, err := l.Apply(sandbox.LayerOptions{Paths: []string{wrong, dir + "/old"}}); err == nil {
			t.Errorf("%s is applied", wrong)
		}
	}
	has(t, "old", "one\n")

	told := 0
	left, err := l.Apply(sandbox.LayerOptions{Paths: []string{dir + "/./old", dir + "/new/a/"}, Progress: func(_, total int) { told = total }})
	if err != nil || left != nil || told != 3 {
		t.Errorf("%+v, %v, %d", left, err, told)
	}
	has(t, "old", "one\ntwo\n")
	has(t, "new/a", "x\n")
	has(t, "new/.envrc", "")
	again, err := sandbox.OpenLayer(l.ID)
	if err != nil || len(again.Changes) != 2 || again.ID != l.ID || len(again.Trees) != 1 || again.Trees[0] != dir {
		t.Errorf("%+v, %v", again, err)
	}
	if err := again.Undo(); err != nil {
		t.Error(err)
	}
	has(t, "old", "one\n")
	has(t, "new/a", "")
	if err := again.Discard(); err != nil {
		t.Error(err)
	}
	if _, err := sandbox.OpenLayer(l.ID); err == nil {
		t.Error("what was thrown away is there")
	}
	if _, err := again.Apply(sandbox.LayerOptions{}); err == nil {
		t.Error("what was thrown away is applied")
	}
	noSessions(t)
}

// TestLayerConflict: what has changed outside is left, and told, until it is decided.
func TestLayerConflict(t *testing.T) {
	p, dir := tryPlace(t)
	put(t, "a", "one\n")
	put(t, "b", "one\n")
	l := try(t, p, "echo theirs >a; echo theirs >b; echo x >c")
	if !l.Clean {
		t.Errorf("%+v", l.Changes)
	}
	put(t, "a", "ours\n")
	put(t, "b", "ours\n")
	left, err := l.Apply(sandbox.LayerOptions{})
	if err != nil || len(left) != 2 || left[0].Path != dir+"/a" || len(left[0].Look) != 1 {
		t.Errorf("%+v, %v", left, err)
	}
	has(t, "a", "ours\n")
	has(t, "c", "x\n")
	both := sandbox.LayerOptions{Theirs: []string{dir + "/a"}, Ours: []string{dir + "/a"}}
	if _, err := l.Apply(both); err == nil {
		t.Error("one path is decided both ways")
	}
	if _, err := l.Apply(sandbox.LayerOptions{Theirs: []string{dir + "/c"}}); err == nil {
		t.Error("what is no conflict is decided")
	}
	left, err = l.Apply(sandbox.LayerOptions{Theirs: []string{dir + "/a"}, Ours: []string{dir + "/b"}})
	if err != nil || left != nil {
		t.Errorf("%+v, %v", left, err)
	}
	has(t, "a", "theirs\n")
	has(t, "b", "ours\n")
	if again, err := sandbox.OpenLayer(l.ID); err != nil || again.Changes != nil || !again.Clean {
		t.Errorf("what was decided is left: %+v, %v", again, err)
	}
	if err := l.Discard(); err != nil {
		t.Error(err)
	}
}

// TestLayerNone: there is no layer of a command that writes nothing, nor without FS.Writes; a layer that is
// none returns errors.
func TestLayerNone(t *testing.T) {
	p, _ := tryPlace(t)
	r, err := sandbox.Run(context.Background(), p, shell("echo x >x; rm x"))
	if err != nil || r.Layer != nil {
		t.Errorf("nothing written: %+v, %v", r.Layer, err)
	}
	p.FS.Writes.Value = ""
	r, err = sandbox.Run(context.Background(), p, shell("echo x >x"))
	if err != nil || r.Layer != nil {
		t.Errorf("control: %+v, %v", r.Layer, err)
	}
	has(t, "x", "x\n")
	var zero sandbox.Layer
	_, failed := zero.Apply(sandbox.LayerOptions{})
	for name, err := range map[string]error{
		"Apply": failed, "Diff": zero.Diff(os.Stderr), "Undo": zero.Undo(), "Discard": zero.Discard(),
	} {
		if err == nil {
			t.Errorf("%s of a layer that is none", name)
		}
	}
	if _, err := sandbox.OpenLayer("nothing"); err == nil {
		t.Error("there is a layer that nobody made")
	}
}

// TestLayerCanceled: when the context ends, what the command wrote until then is in the layer.
func TestLayerCanceled(t *testing.T) {
	p, dir := tryPlace(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	o := shell("echo x >x; echo written; exec sleep 1000")
	o.Stdout = in
	c, err := sandbox.Start(ctx, p, o)
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Error(err)
	}
	cancel()
	r, err := c.Wait()
	if !errors.Is(err, context.Canceled) || r.Layer == nil || len(r.Layer.Changes) != 1 || r.Layer.Changes[0].Path != dir+"/x" {
		t.Fatalf("%+v, %v", r.Layer, err)
	}
	if left, err := r.Layer.Apply(sandbox.LayerOptions{}); err != nil || left != nil {
		t.Errorf("%+v, %v", left, err)
	}
	has(t, "x", "x\n")
}

// TestLayerKept: a layer whose session goes on is neither applied nor thrown away; then it has all.
func TestLayerKept(t *testing.T) {
	p, _ := tryPlace(t)
	o := shell("echo x >x; (while ! test -e ../go; do sleep 0.02; done; echo y >y) >/dev/null 2>&1 &")
	o.Keep = true
	r, err := sandbox.Run(context.Background(), p, o)
	if err != nil || r.Layer == nil || r.Layer.Changes != nil || r.Layer.ID != r.Report.ID {
		t.Fatalf("%+v, %v", r.Layer, err)
	}
	_, opened := sandbox.OpenLayer(r.Layer.ID)
	_, applied := r.Layer.Apply(sandbox.LayerOptions{})
	for name, err := range map[string]error{
		"opened": opened, "applied": applied, "shown": r.Layer.Diff(os.Stderr), "thrown away": r.Layer.Discard(),
	} {
		if err == nil {
			t.Errorf("%s while the session goes on", name)
		}
	}
	put(t, "../go", "")
	var l *sandbox.Layer
	testkit.Eventually(t, "the session has ended", func() bool {
		time.Sleep(20 * time.Millisecond)
		l, err = sandbox.OpenLayer(r.Layer.ID)
		return err == nil
	})
	if len(l.Changes) != 2 {
		t.Errorf("%+v", l.Changes)
	}
	if left, err := r.Layer.Apply(sandbox.LayerOptions{}); err != nil || left != nil {
		t.Errorf("%+v, %v", left, err)
	}
	has(t, "y", "y\n")
}
