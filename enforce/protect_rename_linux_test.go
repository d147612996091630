package enforce_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
)

// renameActs rename by a path that counts from a directory.
func renameActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"renameat": func(a []string) error { // DIR FROM TO
			dir, err := unix.Open(a[0], unix.O_PATH, 0)
			if err != nil {
				return err
			}
			return unix.Renameat(dir, a[1], dir, a[2])
		},
	}
}

// TestProtectedRename: whoever renames a protected file, or puts another one in its
// place, is told EROFS, however the path is written; where no broker is, EBUSY. What
// has the same name elsewhere, and all else, is renamed.
func TestProtectedRename(t *testing.T) {
	needMounts(t)
	caps := enforce.Probe()
	if !caps.SeccompNotify {
		testkit.Lacks(t, testkit.Seccomp, caps.SeccompReason, caps.SeccompNotifyReason)
	}
	enforce.ProbeNamespaces(&caps)
	without := caps
	without.SeccompNotify = false
	p := repository(t)
	write(t, p.in+"/.git/new", "new")
	write(t, p.in+"/sub/config", "its own")
	write(t, p.in+"/sub/new", "new")
	for link, to := range map[string]string{"git": ".git"} {
		if err := os.Symlink(to, p.in+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		caps enforce.Caps
		want unix.Errno
	}{{caps, unix.EROFS}, {without, unix.EBUSY}} {
		plan := enforce.NewPlan(p.policy, c.caps, host(), enforce.Options{})
		for _, x := range []struct {
			act  string
			args []string
			want unix.Errno
		}{
			{"rename", []string{p.in + "/.git/new", p.in + "/.git/config"}, c.want},
			{"rename", []string{p.in + "/.git/config", p.in + "/.git/gone"}, c.want},
			{"rename", []string{".git/new", ".git/config"}, c.want},
			{"rename", []string{".git/hooks/", ".git/h"}, c.want},
			{"rename", []string{"git/new", "git/../.git/config"}, c.want},
			{"renameat", []string{".git", "new", "config"}, c.want},
			{"renameat", []string{".git", "../.git/new", p.in + "/.git/config"}, c.want},
			{"exchange", []string{".git/new", ".git/config"}, c.want},
			{"rename", []string{"sub/new", ".envrc"}, c.want},
			{"rename", []string{"sub/new", "sub/config"}, 0},
			{"rename", []string{"sub/config", "sub/new"}, 0},
			{"renameat", []string{"sub", "new", "config"}, 0},
			{"rename", []string{"sub/config", "none/config"}, unix.ENOENT},
			{"rename", []string{"sub/config", "sub/new"}, 0},
		} {
			ws, out := run(t, plan, actCommand(self(t), p.in, x.act, x.args))
			if got := unix.Errno(ws.ExitStatus()); got != x.want {
				t.Errorf("%s %q, with a broker %v: %v, want %v %s", x.act, x.args, plan.Mediation != nil, got, x.want, out)
			}
		}
	}
}
