package attack_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// private is a setting as a test asks for it.
var private = policy.Named{Value: "private", Origin: policy.Origin{Source: "test"}}

// TestHomeNothingOpens draws rules and denials in a private home, in directories for temporary
// files that are private or not, and with private process ids. A shell can read, write and
// execute exactly what the policy allows.
func TestHomeNothingOpens(t *testing.T) {
	nothingOpens(t, 24, 14, policy.Private{Home: private, Pids: private}, func(t *testing.T, plan *enforce.Plan) {
		if homeOf(plan) == nil {
			t.Errorf("no private home: %v", plan.Gaps)
		}
	})
}

// homeOf returns the private home directory of a plan, or nil.
func homeOf(p *enforce.Plan) *mounts.PrivateDir {
	if p.Mounts != nil {
		for _, d := range p.Mounts.Private {
			if d.From != "" {
				return &d
			}
		}
	}
	return nil
}

// homePlace returns a place in a home directory, with a file of each kind beside it.
func homePlace(t *testing.T) (p *place, home string) {
	t.Helper()
	p = tmpPlace(t)
	home = filepath.Dir(p.dir)
	p.policy.Home, p.policy.Private.Home = home, private
	for _, d := range []string{"/.ssh", "/.config/foo", "/ro/sub"} {
		if err := os.MkdirAll(home+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"/.ssh/key", "/.config/foo/token", "/.netrc", "/ro/file", "/ro/.env", "/ro/sub/.env"} {
		if err := os.WriteFile(home+f, []byte("#!/bin/sh\necho secret\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".netrc", home+"/link"); err != nil {
		t.Fatal(err)
	}
	return p, home
}

// TestHome: what is closed in the home directory does not exist, whichever way the command
// tries.
func TestHome(t *testing.T) {
	needMounts(t)
	p, home := homePlace(t)
	p.allow(t, policy.Read, home+"/ro")
	p.policy.Deny = []resolve.DenyPath{{Pattern: home + "/**/.env", Glob: true}}
	plan := p.mountsPlan(t, enforce.Options{})
	if len(plan.Mounts.Mounts) != 2 || homeOf(plan) == nil {
		t.Fatalf("%+v, %v", plan.Mounts, plan.Gaps)
	}
	for _, script := range []string{
		"cat $H/.ssh/key", "cat $H/.netrc", "cat $H/link", "cat $H/.config/foo/token",
		"cat /proc/self/root$H/.netrc", "cat $H/../$(basename $H)/.netrc", "cat $PWD/../../.netrc", "cat /proc/self/cwd/../../.netrc",
		"cat $H/ro/.env", "cat $H/ro/sub/.env", "cat /proc/self/root/$H/ro/.env",
		"$H/ro/file | grep secret", "cd $H/ro && ./file | grep secret",
		"touch $H/ro/new", "chmod 700 $H/ro/file", "mv $H/ro/file $H/ro/file2", "mv $H/ro $H/ro2", "rm $H/ro/.env && echo secret >$H/ro/.env",
		"ln $H/ro/file $H/linked",
		"cat $T/.home/.netrc", "test -s $T/.home/ro/file",
	} {
		script = strings.NewReplacer("$H", home, "$T", p.policy.TempDir).Replace(script)
		if status, out := p.sh(t, plan, script); status == 0 {
			t.Errorf("%s: it worked: %s", script, out)
		}
	}
	for _, script := range []string{
		"cat $H/ro/file", "ls $H/ro/sub", "echo mine >$H/x && grep mine $H/x", "mkdir -p $H/.ssh && echo mine >$H/.ssh/key && grep mine $H/.ssh/key",
		"cp $H/ro/file $H/run && $H/run | grep secret", "cat file && echo x >>file", "test $(stat -c %a $H) = 700",
	} {
		if status, out := p.sh(t, plan, strings.ReplaceAll(script, "$H", home)); status != 0 {
			t.Errorf("%s: exit status %d: %s", script, status, out)
		}
	}
	if b, err := os.ReadFile(home + "/.ssh/key"); err != nil || strings.Contains(string(b), "mine") {
		t.Errorf("outside: %q, %v", b, err)
	}
	if _, err := os.Lstat(home + "/x"); err == nil {
		t.Error("it was made outside")
	}
}

// TestNoHome: if a private home would not be private, or would open something, there is none,
// and that is a gap.
func TestNoHome(t *testing.T) {
	needMounts(t)
	for _, c := range []struct {
		name string
		with func(p *place, home string)
		why  string
	}{
		{"it is allowed", func(p *place, home string) { p.allow(t, policy.Read, home) }, "is allowed (test)"},
		{"what is around is", func(p *place, home string) { p.allow(t, policy.Read, filepath.Dir(home)) }, "is allowed (test)"},
		{"it is the root directory", func(p *place, home string) { p.policy.Home = "/" }, "no home directory"},
		{"it is /tmp", func(p *place, home string) { p.policy.Home = "/tmp" }, "no home directory"},
		{"it is a file", func(p *place, home string) { p.policy.Home = home + "/.netrc" }, "no home directory"},
		{"it is not there", func(p *place, home string) { p.policy.Home = home + "/none" }, "not exist"},
		{"it is not known", func(p *place, home string) { p.policy.Home = "" }, "no home directory"},
		{"no temporary directory", func(p *place, home string) { p.policy.TempDir = "" }, "no temporary one"},
		{"a directory of sockets", func(p *place, home string) {
			p.allow(t, 0, home+"/ro")
			last := len(p.policy.Paths) - 1
			p.policy.Net.Unix = p.policy.Paths[last:]
			p.policy.Paths = p.policy.Paths[:last]
		}, "is allowed (test)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, home := homePlace(t)
			c.with(p, home)
			plan := enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), enforce.Options{})
			i := slices.IndexFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapHome })
			if i < 0 || homeOf(plan) != nil || plan.Gaps[i].Kind != enforce.Core || !strings.Contains(plan.Gaps[i].Why, c.why) {
				t.Errorf("%v", plan.Gaps)
			}
		})
	}
	p, home := homePlace(t)
	if err := os.Symlink(home, p.dir+"/home"); err != nil {
		t.Fatal(err)
	}
	p.policy.Home = p.dir + "/home"
	if h := homeOf(p.mountsPlan(t, enforce.Options{})); h == nil || h.Path != home {
		t.Errorf("through a link: %+v", h)
	}
}
