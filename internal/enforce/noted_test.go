package enforce

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestPlanUnderShortage: no plan mistakes "no descriptor left" for "no such file", since it
// would then leave git's configuration unprotected.
func TestPlanUnderShortage(t *testing.T) {
	r := &resolve.Resolved{OS: "linux", Dir: "/p", Paths: []resolve.Path{{Path: "/p", Mode: os.ModeDir, Access: policy.Read | policy.Write}}}
	caps := Caps{OS: "linux", Arch: "amd64", Landlock: 7, Seccomp: true, MountNS: true}
	for _, test := range []struct {
		answer error
		short  bool
	}{{syscall.ENOENT, false}, {syscall.EACCES, false}, {syscall.ENOTDIR, false}, {syscall.EMFILE, true}, {syscall.ENFILE, true}, {syscall.ENOMEM, true}, {syscall.EIO, true}} {
		h := &host.Host{
			Lstat: func(name string) (host.Stat, error) {
				if strings.HasPrefix(name, "/p/.git") {
					return host.Stat{}, &fs.PathError{Op: "lstat", Path: name, Err: test.answer}
				}
				return host.Stat{Mode: fs.ModeDir}, nil
			},
			ReadDir:  func(string, int) ([]fs.DirEntry, error) { return nil, nil },
			ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
			Readlink: func(string) (string, error) { return "", syscall.EINVAL },
		}
		p := NewPlan(r, caps, h, Options{})
		if (p.Caps.Err != nil) != test.short || test.short && !errors.Is(p.Caps.Err, test.answer) {
			t.Errorf("%v: the plan's error is %v", test.answer, p.Caps.Err)
		}
		if _, err := p.Confine(&fork.Command{Path: "/", Args: []string{"/"}}); test.short && !errors.Is(err, test.answer) {
			t.Errorf("%v: it confines a command all the same: %v", test.answer, err)
		}
	}
}

// TestShortageIsNoRefusal: a command runs without a namespace only if the machine refuses one.
func TestShortageIsNoRefusal(t *testing.T) {
	p := &Plan{Mounts: &mounts.Plan{}}
	steps := []fork.Tag{mounts.TagUnshare, mounts.TagSetup, mounts.TagOpen, mounts.TagIPC, mounts.TagCover}
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR, syscall.EIO} {
		for _, step := range steps {
			err := &fork.StepError{Stage: "before", Tag: step, Errno: errno}
			if _, refused := p.Refused(err); refused {
				t.Errorf("%v is taken for a refusal", err)
			}
		}
	}
	for _, step := range []fork.Tag{steps[0], steps[1], steps[3], steps[4]} {
		if _, refused := p.Refused(&fork.StepError{Stage: "before", Tag: step, Errno: syscall.EPERM}); !refused {
			t.Errorf("%s: EPERM is not taken for a refusal", step)
		}
	}
}

// TestNamespacesOff: a limit that turns namespaces off differs from one that is reached.
func TestNamespacesOff(t *testing.T) {
	const all, one = "         0          0 4294967295", "      1000       1000          1"
	for _, test := range []struct {
		name, user, mnt, ipc, ids string
		off                       bool
	}{
		{"used up", "100", "100", "100", all, false},
		{"no users'", "0", "100", "100", all, true},
		{"no mounts'", "100", "0", "100", all, true},
		{"no IPC", "100", "100", "0", all, true},
		{"in a container", "100", "100", "100", one, true},
		{"procfs is missing", "", "", "", "", false},
	} {
		files := map[string]string{"/proc/sys/user/max_user_namespaces": test.user, "/proc/sys/user/max_mnt_namespaces": test.mnt,
			"/proc/sys/user/max_ipc_namespaces": test.ipc, "/proc/self/uid_map": test.ids}
		if off := namespacesOff(func(f string) string { return files[f] }); off != test.off {
			t.Errorf("%s: %v", test.name, off)
		}
	}
}
