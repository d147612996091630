package attack_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// ownPlace has a home directory as the writable tree, with zsbx's own files in it, and the
// configuration behind links.
func ownPlace(t *testing.T) *place {
	p := newPlace(t)
	write(t, p.in+"/dot/config/zsbx/policy.toml", "[fs]\n")
	write(t, p.in+"/.local/state/zsbx/trust/a", "{}\n")
	write(t, p.in+"/project/.zsbx.toml", "[fs]\n")
	write(t, p.in+"/project/src/file", "x\n")
	for link, to := range map[string]string{"/.config": "links/config", "/links/config": "../dot/config"} {
		if err := os.MkdirAll(p.in+"/links", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, p.in+link); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// ownPlan returns a plan that protects zsbx's own files, with or without mounts.
func (p *place) ownPlan(t *testing.T, mounts bool) *enforce.Plan {
	t.Helper()
	caps := enforce.Probe()
	caps.MountNS = caps.MountNS && mounts
	if !mounts {
		caps.MountReason = "not in this test"
	}
	plan := enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{Accepted: []string{enforce.GapProtect}, Protect: []string{
		p.in + "/.config/zsbx", p.in + "/.local/state/zsbx", p.in + "/project/.zsbx.toml",
	}})
	if err := plan.Err(nil, false); err != nil {
		t.Fatal(err)
	}
	if (plan.Mounts != nil) != mounts {
		t.Fatalf("mounts: %v", plan.Mounts)
	}
	return plan
}

// bothWays runs a test with mounts, if possible, and without.
func bothWays(t *testing.T, test func(t *testing.T, mounts bool)) {
	needLandlock(t, 1)
	t.Run("mounts", func(t *testing.T) {
		needMounts(t)
		test(t, true)
	})
	t.Run("no mounts", func(t *testing.T) { test(t, false) })
}

func TestOwnFiles(t *testing.T) {
	bothWays(t, func(t *testing.T, mounts bool) {
		for _, a := range []breach{
			{"the policy", `echo x >>.config/zsbx/policy.toml`},
			{"the policy behind the link", `echo x >>dot/config/zsbx/policy.toml`},
			{"the policy emptied", `truncate -s 0 .config/zsbx/policy.toml`},
			{"the policy removed", `rm -f .config/zsbx/policy.toml && ! test -e .config/zsbx/policy.toml`},
			{"the policy replaced", `echo x >n && mv n .config/zsbx/policy.toml`},
			{"the policy by a hard link", `ln .config/zsbx/policy.toml project/src/h && echo x >>project/src/h`},
			{"beside the policy", `echo x >.config/zsbx/settings.toml`},
			{"its directory renamed", `mv dot/config/zsbx dot/config/z && mkdir dot/config/zsbx`},
			{"its directory removed", `rm -rf dot/config/zsbx && mkdir dot/config/zsbx`},
			{"the directory above renamed", `mv dot/config dot/c`},
			{"two above renamed", `mv dot project/dot`},
			{"the first link", `rm .config && mkdir -p .config/zsbx`},
			{"the first link replaced", `ln -s project l && mv -T l .config`},
			{"the second link", `rm links/config && mkdir -p links/config/zsbx`},
			{"the links' directory", `mv links l && mkdir -p links/config/zsbx`},
			{"the trust store", `echo x >.local/state/zsbx/trust/b`},
			{"a trust record", `echo x >>.local/state/zsbx/trust/a`},
			{"a session", `mkdir -p .local/state/zsbx/sessions/x`},
			{"the state directory", `mv .local/state .local/s && mkdir -p .local/state/zsbx/trust`},
			{"the project's policy", `echo x >>project/.zsbx.toml`},
			{"the project's policy removed", `rm -f project/.zsbx.toml && ! test -e project/.zsbx.toml`},
			{"the project's policy replaced", `echo x >n && mv n project/.zsbx.toml`},
			{"the project renamed", `mv project p2 && mkdir project`},
			{"through /proc/self/root", `echo x >>"/proc/self/root$PWD/project/.zsbx.toml"`},
		} {
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				if status, out := ownPlace(t).sh(t, nil, a.script); status != 0 {
					t.Fatalf("control: exit status %d: %s", status, out)
				}
				p := ownPlace(t)
				if status, out := p.sh(t, p.ownPlan(t, mounts), a.script); status == 0 {
					t.Errorf("it worked: %s", out)
				}
			})
		}
	})
}

// TestOwnFilesWorksBeside: the rest of the tree stays writable. Without mounts only entries
// directly in the directories above the files do not.
func TestOwnFilesWorksBeside(t *testing.T) {
	bothWays(t, func(t *testing.T, mounts bool) {
		p := ownPlace(t)
		plan := p.ownPlan(t, mounts)
		for _, script := range []string{
			`cat .config/zsbx/policy.toml project/.zsbx.toml .local/state/zsbx/trust/a >/dev/null && ls . project .config >/dev/null`,
			`echo x >project/src/new && mv project/src/new project/src/newer && rm project/src/newer`,
			`mkdir -p sub/a/b && mv sub/a sub/c && echo x >sub/c/b/d && mv sub/c project/src/c && rm -r project/src/c`,
			`echo x >>file`,
		} {
			if status, out := p.sh(t, plan, script); status != 0 {
				t.Errorf("%s: exit status %d: %s", script, status, out)
			}
		}
		status, _ := p.sh(t, plan, `echo x >new`)
		told := slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool {
			return g.Name == enforce.GapZsbxFiles && g.Kind == enforce.Hardening && strings.Contains(g.Promise, p.in+", ")
		})
		if (status == 0) != mounts || told == mounts {
			t.Errorf("new at the top: exit status %d, reported: %v", status, told)
		}
	})
}

// TestOwnDirectoryAsked: a rule asks for the directory itself, or one in it.
func TestOwnDirectoryAsked(t *testing.T) {
	bothWays(t, func(t *testing.T, mounts bool) {
		for _, dir := range []string{"/dot/config/zsbx", "/.local/state/zsbx/trust"} {
			script := `echo x >"` + dir[1:] + `/x"`
			if status, out := ownPlace(t).sh(t, nil, script); status != 0 {
				t.Fatalf("control: exit status %d: %s", status, out)
			}
			p := ownPlace(t)
			p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == p.in })
			p.allow(t, policy.Read|policy.Write, p.in+dir)
			if status, out := p.sh(t, p.ownPlan(t, mounts), script); status == 0 {
				t.Errorf("%s: it worked: %s", dir, out)
			}
		}
	})
}

// TestOwnFilesHardLink: another name of a policy can't be found, so that is a core gap. It is
// none if nobody may write the file.
func TestOwnFilesHardLink(t *testing.T) {
	needLandlock(t, 1)
	for mode, want := range map[os.FileMode]bool{0o600: true, 0o444: false} {
		p := ownPlace(t)
		file := p.out + "/policy.toml"
		write(t, file, "[fs]\n")
		if err := os.Link(file, p.in+"/project/src/hard"); err != nil {
			t.Fatal(err)
		}
		if status, out := p.sh(t, nil, `echo y >>project/src/hard && grep y ../out/policy.toml`); status != 0 {
			t.Fatalf("control: exit status %d: %s", status, out)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		plan := enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), enforce.Options{Protect: []string{file}})
		i := slices.IndexFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapZsbxFiles && g.Kind == enforce.Core })
		if (i >= 0) != want {
			t.Errorf("%v: %v", mode, plan.Gaps)
		}
		if i < 0 {
			continue
		}
		if status, out := p.sh(t, nil, plan.Gaps[i].Hint); status != 0 {
			t.Errorf("the hint: exit status %d: %s", status, out)
		}
		plan = enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), enforce.Options{Protect: []string{file}})
		if err := plan.Err(nil, false); err != nil {
			t.Errorf("after the hint: %v", err)
		}
	}
}

// TestOwnFilesElsewhere mounts the file system of zsbx's own files a second time, in the
// writable tree and as the writable tree itself.
func TestOwnFilesElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	bothWays(t, func(t *testing.T, mounts bool) {
		for _, tree := range []string{"", "/mnt"} {
			p := newPlace(t)
			write(t, p.out+"/state/zsbx/record", "x\n")
			at := p.in + "/mnt"
			if err := os.Mkdir(at, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount(p.out, at, "", unix.MS_BIND, ""); err != nil {
				testkit.Lacks(t, testkit.UserNS, "no bind mount: ", err)
			}
			t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
			p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == p.in })
			p.allow(t, policy.Read|policy.Write, p.in+tree)
			plan := func(caps enforce.Caps) *enforce.Plan {
				caps.MountNS = mounts
				return enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{Protect: []string{p.out + "/state/zsbx"}})
			}(enforce.Probe())
			const script = `echo y >>mnt/state/zsbx/record`
			if status, out := p.sh(t, nil, script); status != 0 {
				t.Fatalf("control: exit status %d: %s", status, out)
			}
			if status, out := p.sh(t, plan, script); status == 0 {
				t.Errorf("writable tree %q: it worked: %s", tree, out)
			}
			if status, out := p.sh(t, plan, `echo y >>mnt/file`); status != 0 {
				t.Errorf("writable tree %q: beside it: %s", tree, out)
			}
		}
	})
}

// TestReliedOn: what tracking relies on is not writable, even if all else is.
func TestReliedOn(t *testing.T) {
	bothWays(t, func(t *testing.T, mounts bool) {
		const script = `echo 1 >/proc/self/oom_score_adj`
		p := newPlace(t)
		if status, out := p.sh(t, nil, script); status != 0 {
			t.Fatalf("control: exit status %d: %s", status, out)
		}
		p.allow(t, policy.Read|policy.Write|policy.Exec, "/")
		plan := p.ownPlanAll(t, mounts)
		if status, out := p.sh(t, plan, script); status == 0 {
			t.Errorf("it worked: %s", out)
		}
		if status, out := p.sh(t, plan, `cat /proc/self/status >/dev/null && echo x >sub/y`); status != 0 {
			t.Errorf("beside it: %s", out)
		}
	})
}

func (p *place) ownPlanAll(t *testing.T, mounts bool) *enforce.Plan {
	t.Helper()
	caps := enforce.Probe()
	caps.MountNS = mounts
	plan := enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{Accepted: []string{enforce.GapProtect}})
	if err := plan.Err(nil, false); err != nil {
		t.Fatal(err)
	}
	return plan
}

// TestReliedOnElsewhere: the same for another proc(5), as in a directory for chroot(2).
func TestReliedOnElsewhere(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	bothWays(t, func(t *testing.T, mounts bool) {
		p := newPlace(t)
		at := p.in + "/chroot/proc"
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("proc", at, "proc", 0, ""); err != nil {
			testkit.Lacks(t, testkit.UserNS, "no mount: ", err)
		}
		t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		const script = `echo 1 >chroot/proc/self/oom_score_adj`
		if status, out := p.sh(t, nil, script); status != 0 {
			t.Fatalf("control: exit status %d: %s", status, out)
		}
		plan := p.ownPlanAll(t, mounts)
		if status, out := p.sh(t, plan, script); status == 0 {
			t.Errorf("it worked: %s", out)
		}
		if status, out := p.sh(t, plan, `cat chroot/proc/self/status >/dev/null && echo x >sub/y`); status != 0 {
			t.Errorf("beside it: %s", out)
		}
	})
}
