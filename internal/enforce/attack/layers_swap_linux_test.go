package attack_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// TestLayerSwap is TestMaskSwap in a tree that has a layer, for a denied file, a denied directory, and a
// directory of which programs may be run. The layer is on the tree's file system or on another: then
// the kernel numbers the files in another way. The control is in the answers: what is not denied
// is read, and some commands start.
func TestLayerSwap(t *testing.T) {
	needMounts(t)
	for _, c := range []struct{ name, deny, exec, script string }{
		{name: "a file", deny: "/a/x/run", script: `cat a/x/run b/x/run`},
		{name: "a directory", deny: "/a/x", script: `cat a/x/run b/x/run`},
		{name: "a rule", exec: "/a/x", script: `a/x/run; b/x/run`},
	} {
		for _, elsewhere := range []bool{false, true} {
			name := c.name
			if elsewhere {
				name += " on another file system"
			}
			t.Run(name, func(t *testing.T) {
				p, texts := swapPlace(t, elsewhere)
				if c.deny != "" {
					p.deny(p.in + c.deny)
				}
				swapping(t, p.in+"/a", p.in+"/b")
				p.countSwaps(t, texts, c.exec, c.script)
			})
		}
	}
}

// swapPlace returns a place whose tree has two directories that are alike, and what their programs print, by
// the inodes of the programs and their directories.
func swapPlace(t *testing.T, elsewhere bool) (p *place, texts map[uint64]string) {
	p = newPlace(t)
	texts = map[uint64]string{}
	for _, d := range []string{"a", "b"} {
		file := p.in + "/" + d + "/x/run"
		write(t, file, "#!/bin/sh\necho "+d+d+d+"\n")
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{file, p.in + "/" + d + "/x"} {
			id, _ := fileID(t, name)
			texts[id.Ino] = d + d + d
		}
	}
	p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == p.in })
	p.allow(t, policy.Read|policy.Write, p.in)
	if elsewhere {
		p.dir = otherFileSystem(t, p.in)
	}
	return p, texts
}

// otherFileSystem returns a directory for layers that is not on a tree's file system.
func otherFileSystem(t *testing.T, tree string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "zsbx-layer")
	if err != nil {
		t.Skip("no other file system: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	one, _ := fileID(t, dir)
	other, _ := fileID(t, tree)
	if one.Dev == other.Dev {
		t.Skip("/dev/shm and the directory for tests are one file system")
	}
	if err := unix.Setxattr(dir, "user.zsbx", []byte("1"), 0); err != nil {
		testkit.Lacks(t, testkit.UserNS, "/dev/shm can't have layers before Linux 6.6: ", err)
	}
	return dir
}

// swapping exchanges two directories as fast as it can until the test ends.
func swapping(t *testing.T, a, b string) {
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
		}
	}()
	t.Cleanup(func() { over.Store(true); <-done })
}

// countSwaps starts commands while a and b are exchanged. What a plan closes is the file that has the name
// when the plan is made.
func (p *place) countSwaps(t *testing.T, texts map[uint64]string, exec, script string) {
	t.Helper()
	paths := p.policy.Paths
	ran, stopped, seen := 0, 0, 0
	for range 150 {
		p.policy.Paths = slices.Clone(paths)
		if exec != "" {
			p.allow(t, policy.Exec, p.in+exec)
		}
		plan := p.tryPlan(t)
		inode := p.policy.Paths[len(p.policy.Paths)-1].ID.Ino // that only its programs may be run
		for _, m := range plan.Mounts.Mounts {
			if strings.HasPrefix(m.Path, p.in+"/a/x") {
				inode = m.ID.Ino
			}
		}
		_, out, err := started(t, plan, &fork.Command{
			Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: p.in, Env: []string{"PATH=/usr/bin:/bin"},
		})
		var se *fork.StepError
		switch {
		case errors.Is(err, landlock.ErrChanged), errors.As(err, &se) && (se.Errno == unix.ENOENT || se.Errno == unix.ESTALE):
			stopped++
			continue
		case err != nil:
			t.Fatal(err)
		}
		ran++
		closed := texts[inode]
		open := map[string]string{"aaa": "bbb", "bbb": "aaa"}[closed]
		if exec != "" {
			closed, open = open, closed
		}
		if strings.Contains(out, closed) {
			t.Fatalf("after %d starts: %q is closed, and the output is %q", ran, closed, out)
		}
		if strings.Contains(out, open) {
			seen++
		}
	}
	t.Logf("%d ran, %d were stopped", ran, stopped)
	if seen == 0 {
		t.Error("control: what is open was never seen")
	}
}
