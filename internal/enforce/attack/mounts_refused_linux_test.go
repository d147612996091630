package attack_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/policy"
)

func TestMountsRefused(t *testing.T) {
	needMounts(t)
	p := repository(t)
	plan := p.mountPlan()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagUnshare, Name: "unshare(2)", Errno: syscall.EPERM}, "unshare(2): operation not permitted; "},
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagSetup, Name: "open_tree(2)", Errno: syscall.EACCES}, "open_tree(2): permission denied; "},
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagSetup, Name: "mount(2) of / as a slave", Errno: syscall.EINVAL}, "mount(2) of / as a slave: invalid argument"}, // in a chroot
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagUnshare, Name: "unshare(2)", Errno: syscall.EINVAL}, "unshare(2): invalid argument; such namespaces are not built into this kernel"},
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagSetup, Name: "opening /proc/self/setgroups", Errno: syscall.EROFS}, "opening /proc/self/setgroups: read-only file system"},
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagCover, Name: "move_mount(2) onto /x", Errno: syscall.EPERM}, "move_mount(2) onto /x: operation not permitted; "},
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagCover, Name: "move_mount(2) onto /x", Errno: syscall.ENOENT}, ""}, // removed meanwhile
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagCover, Name: "move_mount(2) onto /x", Errno: syscall.EINVAL}, ""}, // replaced by a directory
		{&fork.StepError{Stage: "command", Tag: mounts.TagOpen, Name: "/x", Errno: syscall.ENOENT}, ""},
		{&fork.StepError{Stage: "command", Tag: mounts.TagOpen, Name: "/x", Errno: syscall.ENOSYS}, "openat2(2): function not implemented; a seccomp filter refuses it"},
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagOpen, Name: "/x", Errno: syscall.EMFILE}, ""}, // a shortage
		{&fork.StepError{Stage: "exec", Name: "/bin/true", Errno: syscall.EACCES}, ""},
		{errors.New("other"), ""},
		{nil, ""},
	} {
		caps, refused := plan.Refused(c.err)
		if got := caps.MountReason; !strings.HasPrefix(got, c.want) || refused != (c.want != "") {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
		if se := (*fork.StepError)(nil); errors.As(c.err, &se) && enforce.Overtaken(c.err) != (se.Errno == syscall.ENOENT || se.Errno == syscall.EINVAL && se.Tag == mounts.TagCover) {
			t.Errorf("%v: whether it was overtaken is wrong", c.err)
		}
		if strings.Contains(caps.MountReason, "built into") != strings.Contains(c.want, "built into") {
			t.Errorf("%v: the reason is %q", c.err, caps.MountReason)
		}
	}
}

// TestLayersRefused: what the kernel refuses of an overlay is known at the next plan, with what helps.
func TestLayersRefused(t *testing.T) {
	needMounts(t)
	plan := newPlace(t).tryPlan(t)
	for _, c := range []struct {
		step  string
		errno syscall.Errno
		want  string
	}{
		{"fsopen(2)", syscall.ENODEV, "no overlay"},
		{"fsconfig(2) of upperdir", syscall.EINVAL, "set XDG_STATE_HOME"},
		{"fsconfig(2) of lowerdir", syscall.EINVAL, "try a directory on another"},
		{"fsconfig(2)", syscall.EPERM, "Linux 5.11"},
		{"setxattr(2)", syscall.EOPNOTSUPP, "user attributes"},
	} {
		caps, refused := plan.Refused(&fork.StepError{Stage: "keeper", Tag: mounts.TagOverlay, Name: c.step, Errno: c.errno})
		if !refused || !strings.Contains(caps.TryReason, c.want) || caps.MountReason != "" {
			t.Errorf("%s, %v: %q, want %q", c.step, c.errno, caps.TryReason, c.want)
		}
	}
}

// TestManyWritable has more writable paths than a process may have
// descriptors.
func TestManyWritable(t *testing.T) {
	needMounts(t)
	for _, n := range []int{400, 1100} {
		p := denyPlace(t)
		for i := range n {
			d := fmt.Sprintf("%s/many/%d", p.dir, i)
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
			p.allow(t, policy.Read|policy.Write, d)
		}
		plan := p.mountPlan()
		if status, out := p.sh(t, plan, `echo x >../many/1/x && ! cat .env`); status != 0 {
			t.Errorf("%d paths: exit status %d: %s", n, status, out)
		}
	}
}

// TestSwapped replaces a path between the plan and the start. The mounts never cover another
// file.
func TestSwapped(t *testing.T) {
	needMounts(t)
	for name, swap := range map[string]func(p *place) error{
		"by a link": func(p *place) error {
			return errors.Join(os.Rename(p.in+"/.git", p.in+"/g"), os.Symlink(p.out, p.in+"/.git"))
		},
		"gone": func(p *place) error { return os.Remove(p.in + "/.git/config") },
		"a link in the path": func(p *place) error {
			return errors.Join(os.Rename(p.in+"/nested", p.in+"/n"), os.Symlink("n", p.in+"/nested"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := repository(t)
			plan := p.mountPlan()
			if err := swap(p); err != nil {
				t.Fatal(err)
			}
			_, err := startUnder(plan, command(p, "true"))
			var se *fork.StepError
			if !errors.As(err, &se) || se.Tag != mounts.TagOpen {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}
