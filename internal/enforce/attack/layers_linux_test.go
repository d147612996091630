package attack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// tryPlan is mountPlan with a layer for what the command writes, which it makes in the place.
func (p *place) tryPlan(t testing.TB) *enforce.Plan {
	t.Helper()
	p.policy.Writes.Value = "try"
	state := p.dir + "/state"
	plan := enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), enforce.Options{Try: mounts.Try{State: state}})
	for i := range plan.Layered() {
		for _, d := range []string{"upper", "work", "lower"} {
			if err := os.MkdirAll(fmt.Sprintf("%s/%d/%s", state, i, d), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	plan.UseLayer(state)
	t.Cleanup(func() {
		for i := range plan.Layered() { // the kernel makes a directory there that is closed
			_ = os.Chmod(filepath.Join(state, fmt.Sprint(i), "work", "work"), 0o700)
		}
	})
	return plan
}

// layer is where the first tree's layer has its files.
func (p *place) layer() string { return p.dir + "/state/0/upper" }

func TestLayer(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	plan := p.tryPlan(t)
	if len(plan.Mounts.Overlays) == 0 {
		t.Fatal("no layer is planned")
	}
	script := `echo new >new; echo more >>file; rmdir sub; cat file; ls`
	status, out := p.sh(t, plan, script)
	if want := "secret\nmore\nfile\nnew"; status != 0 || out != want {
		t.Fatalf("status %d, output %q, not %q", status, out, want)
	}
	if _, err := os.Stat(p.in + "/new"); err == nil {
		t.Error("a new file is in the tree")
	}
	for name, want := range map[string]string{p.in + "/file": "secret\n", p.layer() + "/file": "secret\nmore\n"} {
		b, err := os.ReadFile(name)
		if err != nil || string(b) != want {
			t.Errorf("%s has %q (%v), not %q", name, b, err, want)
		}
	}
}

// TestLayerHolds tries ways around a layer: to the tree outside, to the layer itself, and around
// Landlock's rules in the tree.
func TestLayerHolds(t *testing.T) {
	needMounts(t)
	breaches := []breach{
		{"write to the tree through /proc/self/root", `echo x >"/proc/self/root$PWD/new" && test -e "$OUT/../in/new"`},
		{"read the layer", `echo x >new && cat "$OUT/../state/0/upper/new"`},
		{"write to the layer", `echo x >"$OUT/../state/0/upper/new"`},
		{"list the layer", `ls "$OUT/../state/0"`},
		{"list where the tree was mounted", `ls "$OUT/../state/0/lower"`},
		{"unmount", `unshare -Urm umount -l "$PWD"`},
		{"mount over", `unshare -Urm mount -t tmpfs none "$PWD"`},
		{"make a whiteout", `mknod gone c 0 0`},
		{"execute what can only be read", `cp /bin/true data/t; chmod 755 data/t; data/t`},
		{"write what can only be read", `echo x >>data/file`},
	}
	for _, b := range breaches {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			write(t, p.in+"/data/file", "data\n")
			write(t, p.in+"/data/program", "#!/bin/sh\n")
			p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == p.in })
			p.allow(t, policy.Read, p.in)
			for _, d := range []string{"/sub", "/file"} {
				p.allow(t, policy.Read|policy.Write, p.in+d)
			}
			p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == p.in+"/file" })
			plan := p.tryPlan(t)
			if err := plan.Err(nil, false); err != nil {
				t.Fatal(err)
			}
			if status, out := p.sh(t, plan, `echo x >sub/new && cat sub/new && cat data/file && ! echo x >new`); status != 0 {
				t.Fatalf("control: status %d: %s", status, out)
			}
			if status, out := p.sh(t, plan, b.script); status == 0 {
				t.Errorf("it worked: %s", out)
			}
		})
	}
}

// TestLayerRules checks that rules for what is in a tree hold for what the command sees.
func TestLayerRules(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	for _, name := range []string{"/bin/run", "/data/run"} {
		write(t, p.in+name, "#!/bin/sh\necho ran\n")
		if err := os.Chmod(p.in+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == p.in })
	p.allow(t, policy.Read|policy.Write, p.in)
	p.allow(t, policy.Exec, p.in+"/bin")
	script := `bin/run && ! data/run && cp bin/run bin/new && bin/new && ! cp /bin/true t || ! ./t`
	for name, plan := range map[string]*enforce.Plan{"without a layer": p.mountPlan(), "with one": p.tryPlan(t)} {
		if status, out := p.sh(t, plan, script); status != 0 || !strings.Contains(out, "ran\n") {
			t.Errorf("%s: status %d: %s", name, status, out)
		}
	}
	if _, err := os.Stat(p.in + "/t"); err != nil {
		t.Error("control: without a layer the file is in the tree")
	}
}

// TestLayerNames makes layers of trees, and in directories, whose names have what the options of a
// mount give a meaning.
func TestLayerNames(t *testing.T) {
	needMounts(t)
	for _, name := range []string{"a,b", "a:b", `a\b`, "a b", "a\nb", "lower", `a\,upperdir=x`, strings.Repeat("n", 255)} {
		t.Run(name[:min(10, len(name))], func(t *testing.T) {
			p := newPlace(t)
			old := p.in
			p.in = p.dir + "/" + name
			if err := os.Rename(old, p.in); err != nil {
				t.Fatal(err)
			}
			p.policy.Dir = p.in
			p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == old })
			p.allow(t, policy.Read|policy.Write, p.in)
			p.dir = p.in + "s"
			if len(name) == 255 {
				p.dir = p.out
			}
			if status, out := p.sh(t, p.tryPlan(t), `echo new >new && cat new file`); status != 0 {
				t.Fatalf("status %d: %s", status, out)
			}
			if b, err := os.ReadFile(p.layer() + "/new"); err != nil || string(b) != "new\n" {
				t.Errorf("the layer has %q, %v", b, err)
			}
		})
	}
}

// overlayMark makes the kernel hide what is below a directory of a layer.
const overlayMark = "user.overlay.opaque"

// TestLayerMarks checks that a command can't make the kernel's marks in a layer. Linux 6.7 and later
// store them under other names, older ones refuse them.
func TestLayerMarks(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	p.allow(t, policy.Read|policy.Exec, self(t))
	errno := p.try(t, p.tryPlan(t), "mark a layer", p.in+"/sub")
	if errno != 0 && errno != unix.EOPNOTSUPP && errno != unix.EPERM {
		t.Errorf("setxattr: %v", errno)
	}
	if n, err := unix.Lgetxattr(p.layer()+"/sub", overlayMark, make([]byte, 8)); err == nil {
		t.Errorf("the layer has a mark of %d bytes that the kernel did not make", n)
	}
}

// TestLayerSeveral gives two trees their layers.
func TestLayerSeveral(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	p.allow(t, policy.Read|policy.Write, p.out)
	plan := p.tryPlan(t)
	if n := len(plan.Layered()); n != 2 {
		t.Fatalf("%d layers are planned, not 2", n)
	}
	if status, out := p.sh(t, plan, `echo 1 >one && echo 2 >"$OUT/two" && mv one "$OUT/one" && cat "$OUT/file"`); status != 0 {
		t.Fatalf("status %d: %s", status, out)
	}
	for _, name := range []string{"one", "two"} {
		if _, err := os.Stat(p.dir + "/state/1/upper/" + name); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(p.out + "/" + name); err == nil {
			t.Errorf("%s is in the tree", name)
		}
	}
}

// TestLayerGaps lists what can't have a layer.
func TestLayerGaps(t *testing.T) {
	needMounts(t)
	for _, c := range []struct {
		name  string
		give  func(p *place)
		state string
		want  string
	}{
		{"a file", func(p *place) { p.allow(t, policy.Read|policy.Write, p.out+"/file") }, "/state", "only a directory"},
		{"the state in the tree", func(p *place) {}, "/in/state", "can't overlap"},
		{"the tree in the state", func(p *place) {}, "", "can't overlap"},
		{"everything", func(p *place) { p.allow(t, policy.Read|policy.Write, "/") }, "/state", "all of /"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			c.give(p)
			p.policy.Writes.Value = "try"
			o := enforce.Options{Try: mounts.Try{State: p.dir + c.state}}
			plan := enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), o)
			err := plan.Err(nil, false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the gap says %v, not %q", err, c.want)
			}
			if err := plan.Err([]string{enforce.GapTry}, false); err != nil {
				t.Error(err)
			}
		})
	}
}
