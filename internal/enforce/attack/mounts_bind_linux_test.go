package attack_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// TestDenyGlobInBind: if a part of a tree is mounted in it a second time, each match is closed
// twice.
func TestDenyGlobInBind(t *testing.T) {
	needMounts(t)
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	for _, bind := range []bool{false, true} {
		p := newPlace(t)
		write(t, p.in+"/s/.env", "TOKEN\n")
		write(t, p.in+"/s/dir.d/x", "TOKEN\n")
		if err := os.Mkdir(p.in+"/b", 0o755); err != nil {
			t.Fatal(err)
		}
		if bind {
			if err := unix.Mount(p.in+"/s", p.in+"/b", "", unix.MS_BIND, ""); err != nil {
				testkit.Lacks(t, testkit.UserNS, "no bind mount: ", err)
			}
			t.Cleanup(func() { unix.Unmount(p.in+"/b", unix.MNT_DETACH) })
		}
		p.deny(p.in + "/**/.env")
		p.deny(p.in + "/**/*.d")
		for _, file := range []string{"s/.env", "b/.env", "s/dir.d/x", "b/dir.d/x"} {
			if file[0] == 'b' && !bind {
				continue
			}
			if status, out := p.sh(t, nil, "cat "+file); status != 0 {
				t.Fatalf("control: %s: %s", file, out)
			}
			if status, out := p.sh(t, p.mountPlan(), "cat "+file); status == 0 {
				t.Errorf("bind %v: %s was read: %s", bind, file, out)
			}
		}
		if status, out := p.sh(t, p.mountPlan(), "echo x >b/new && cat s/../file"); status != 0 {
			t.Errorf("bind %v: beside it: %s", bind, out)
		}
	}
}

// TestDenyBind: what is denied by one name is closed by all names that mounts give it, whatever
// the rules say, with and without a mount namespace. Landlock's rules are bound to inodes, so a
// rule for another name would open both. The controls: nothing is closed without a plan, and
// what is not denied stays open by each name.
func TestDenyBind(t *testing.T) {
	needMounts(t)
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	base := newPlace(t)
	for _, name := range []string{"data/x", "data/pub", "data/d/.env", "data/d/sub/k"} {
		write(t, base.out+"/"+name, "TOKEN\n")
	}
	for at, what := range map[string]string{"all": "data", "part": "data/d", "deep": "data/d/sub"} {
		at = base.out + "/" + at
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(base.out+"/"+what, at, "", unix.MS_BIND, ""); err != nil {
			testkit.Lacks(t, testkit.UserNS, "no bind mount: ", err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	}
	const (
		x, env, key = "data/x all/x", "data/d/.env all/d/.env part/.env", "data/d/sub/k all/d/sub/k part/sub/k deep/k"
		pub         = "data/pub all/pub"
		ro, rw      = policy.Read, policy.Read | policy.Write
	)
	for _, tt := range []struct {
		trees        map[string]policy.Access
		deny         string
		closed, open string
	}{
		{map[string]policy.Access{"data": ro, "all": ro}, "data/x", x, env + " " + pub},
		{map[string]policy.Access{"data": ro, "all": ro}, "all/x", x, env + " " + pub},
		{map[string]policy.Access{"all": ro}, "data/x", x, env + " " + pub},
		{map[string]policy.Access{"data": ro, "all": rw}, "data/x", x, env + " " + pub},
		{map[string]policy.Access{"data": rw, "all": ro}, "data/x", x, env + " " + pub},
		{map[string]policy.Access{"data": ro, "part": ro}, "data/d", env + " " + key, x + " " + pub},
		{map[string]policy.Access{"data": ro, "part": rw}, "data/d/.env", env, x + " " + key},
		{map[string]policy.Access{"": ro}, "data/**/.env", env, x + " " + key},
		{map[string]policy.Access{"": rw}, "data/d", env + " " + key, x + " " + pub},
		{map[string]policy.Access{"": ro}, "part", env + " " + key, x + " " + pub},
		{map[string]policy.Access{"": ro}, "deep/*", key, x + " " + env},
	} {
		p := *base
		own := *base.policy
		p.policy = &own
		own.Paths = slices.Clone(own.Paths)
		for dir, access := range tt.trees {
			p.allow(t, access, base.out+"/"+dir)
		}
		p.deny(base.out + "/" + tt.deny)
		plans := map[string]*enforce.Plan{"mounts": p.mountPlan()}
		if !slices.Contains(slices.Collect(maps.Values(tt.trees)), rw) {
			plans["rules"] = p.plan()
		}
		for how, plan := range plans {
			for _, file := range strings.Fields(tt.closed) {
				if status, out := p.sh(t, nil, "cat $OUT/"+file); status != 0 {
					t.Fatalf("control: %s: %s", file, out)
				}
				if status, _ := p.sh(t, plan, "cat $OUT/"+file); status == 0 {
					t.Errorf("%s, %v without %s: %s was read", how, tt.trees, tt.deny, file)
				}
			}
			for _, file := range strings.Fields(tt.open) {
				dir, _, _ := strings.Cut(file, "/")
				if _, named := tt.trees[dir]; !named && tt.trees[""] == 0 {
					continue
				}
				if status, out := p.sh(t, plan, "cat $OUT/"+file); status != 0 {
					t.Errorf("%s, %v without %s: %s: %s", how, tt.trees, tt.deny, file, out)
				}
			}
		}
	}
}
