package resolve

import (
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// TestRepositoryUnseen: a .git that can't be looked at is not taken for none, since the one
// further up would be opened instead.
func TestRepositoryUnseen(t *testing.T) {
	h := hosttest.Disk(t)
	for _, name := range []string{"objects/x", "refs/x", "HEAD"} {
		hosttest.Write(&h, t, ".git/"+name, "")
	}
	hosttest.Write(&h, t, "sub/x", "")
	top := h.Dir
	h.Dir += "/sub"
	all := func(string) policy.Access { return policy.Read | policy.Write }
	if rules, skipped, _ := gitRules(&h, all); len(skipped) > 0 || len(rules) > 0 {
		t.Errorf("the repository of the tree: %v, %v", rules, skipped)
	}
	lstat := h.Lstat
	h.Lstat = func(p string) (host.Stat, error) {
		if p == h.Dir+"/.git" {
			return host.Stat{}, syscall.EACCES
		}
		return lstat(p)
	}
	none := func(p string) policy.Access {
		if host.Within(p, h.Dir) {
			return policy.Read | policy.Write
		}
		return 0
	}
	if rules, skipped, _ := gitRules(&h, none); len(skipped) != 1 || len(rules) != 0 {
		t.Errorf("unknown: %v, %v; the repository is %s", rules, skipped, top)
	}
	if l := projectDirs(&h); len(l) != 1 {
		t.Errorf("%d directories belong to the project", len(l))
	}
}

// TestSpareUnseen: a place of secrets that can't be looked at is denied. The command could open
// the directory above it.
func TestSpareUnseen(t *testing.T) {
	for _, errno := range []error{syscall.EACCES, syscall.EIO, syscall.ELOOP} {
		h := hosttest.Disk(t)
		hosttest.Mkdirs(&h, t, "project", ".gnupg")
		place := h.Home + "/.gnupg"
		home := h.Home
		h.Dir = home + "/project"
		lstat := h.Lstat
		h.Lstat = func(p string) (host.Stat, error) {
			if p == place {
				return host.Stat{}, errno
			}
			return lstat(p)
		}
		p := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: home, Access: policy.Read | policy.Write, Origin: policy.Origin{Source: "--rw"}}}}}
		r, err := Policy(p, h)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Allowed(place, policy.Read); v.Allowed {
			t.Errorf("%v: %s is open", errno, place)
		}
	}
}
