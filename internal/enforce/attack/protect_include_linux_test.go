package attack_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
)

// TestIncluded: files that the configuration includes are protected like the configuration.
func TestIncluded(t *testing.T) {
	needMounts(t)
	place := func(t *testing.T) *place {
		p := repository(t)
		write(t, p.in+"/.git/config", "[include]\n\tpath = ../team.cfg\n\tpath = \""+p.out+"/outer.cfg\"\n"+
			"[includeIf \"onbranch:x\"]\n\tpath = ../linked.cfg\n\tpath = ../missing.cfg\n\tpath = ../dir/x.cfg\n"+
			"[include] path = ../far/../up.cfg\n[core] [include] path = ../con\\\n\ttinued\\\r\n.cfg\n")
		write(t, p.in+"/team.cfg", "[include]\n\tpath = conf/deep.cfg\n\tpath = team.cfg\n")
		write(t, p.in+"/conf/deep.cfg", "")
		write(t, p.in+"/free.cfg", "")
		write(t, p.in+"/con\ttinued.cfg", "")
		write(t, p.in+"/deep/er/x", "")
		write(t, p.in+"/deep/up.cfg", "")
		write(t, p.in+"/beside.cfg", "")
		write(t, p.in+"/conf/target.cfg", "[include]\n\tpath = beside.cfg\n")
		write(t, p.in+"/last.cfg", "")
		write(t, p.out+"/outer.cfg", "[include]\n\tpath = "+p.in+"/last.cfg\n")
		for link, to := range map[string]string{"linked.cfg": "conf/target.cfg", "far": "deep/er"} {
			if err := os.Symlink(to, p.in+"/"+link); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	breachAll(t, place, []breach{
		{"an included file", `echo x >>team.cfg`},
		{"by rename", `echo x >n && mv n team.cfg`},
		{"what that includes", `echo x >>conf/deep.cfg`},
		{"a link's target", `echo x >>linked.cfg`},
		{"through a file outside", `echo x >>last.cfg`},
		{"one whose name goes on in the next lines", `for f in con*tinued.cfg; do echo x >>"$f"; done`},
		{"its directory renamed", `mv conf c && mkdir conf && echo x >conf/deep.cfg`},
		{"a link replaced", `ln -sf free.cfg linked.cfg`},
		{"what one includes beside a link", `echo x >>beside.cfg`},
		{"one above where a link leads", `echo x >>deep/up.cfg`},
	})
	p := place(t)
	plan := p.mountPlan()
	before := plan.Snapshot(thisHost())
	if status, out := p.sh(t, plan, `echo x >>free.cfg && echo x >missing.cfg && cat team.cfg conf/*.cfg >/dev/null && mkdir dir && echo x >dir/x.cfg`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	var got []string
	for _, c := range before.Changes() {
		got = append(got, strings.TrimPrefix(c.Path, p.in+"/"))
	}
	if want := []string{"dir", "dir/x.cfg", "missing.cfg"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}

// TestLinkedConfig: a configuration that is a link can include files like any other.
func TestLinkedConfig(t *testing.T) {
	needMounts(t)
	breachAll(t, func(t *testing.T) *place {
		p := repository(t)
		if err := os.Remove(p.in + "/.git/config"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../shared/config", p.in+"/.git/config"); err != nil {
			t.Fatal(err)
		}
		write(t, p.in+"/shared/config", "[include]\n\tpath = ../inc\n")
		write(t, p.in+"/inc", "")
		return p
	}, []breach{
		{"the file", `echo x >>shared/config`},
		{"the link", `rm .git/config && echo x >.git/config`},
		{"what it includes", `echo x >>inc`},
	})
}

// TestUnreadConfig: a configuration that can't be read to its end is reported.
func TestUnreadConfig(t *testing.T) {
	needMounts(t)
	for config, want := range map[string]bool{
		"[core]\n\tbare = false\n":                          false,
		"[core]\n\tx = \"y\n[include]\n\tpath = ../a.cfg\n": true,
		"[include]\n\tpath = ~root/x\n":                     true,
		includes(10):                                        false,
		includes(10_000):                                    true,
	} {
		p := repository(t)
		write(t, p.in+"/.git/config", config)
		got := slices.ContainsFunc(p.mountPlan().Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapProtect })
		if got != want {
			t.Errorf("%.100q: reported: %v", config, got)
		}
	}
}

// includes returns a configuration that includes n files.
func includes(n int) string {
	var b strings.Builder
	b.WriteString("[include]\n")
	for i := range n {
		fmt.Fprintf(&b, "\tpath = ../n%d\n", i)
	}
	return b.String()
}

// TestProtectedBound: what a command leaves in a tree can slow the next start only up to a
// limit, and does not use up the limit of other protected files.
func TestProtectedBound(t *testing.T) {
	needMounts(t)
	for name, leave := range map[string]func(p *place, i int){
		"includes":  func(p *place, i int) { write(t, fmt.Sprintf("%s/nested/n%d", p.in, i), "") },
		"any names": func(p *place, i int) { write(t, fmt.Sprintf("%s/n%d.code-workspace", p.in, i), "") },
	} {
		p := repository(t)
		write(t, p.in+"/nested/.git/config", includes(6000))
		write(t, p.in+"/.envrc", "")
		for i := range 6000 {
			leave(p, i)
		}
		plan := p.mountPlan()
		if n := len(plan.Mounts.Mounts); n > 5000 {
			t.Errorf("%s: %d mounts", name, n)
		}
		for _, file := range []string{".git/config", ".git/hooks/new", ".envrc"} {
			if status, out := p.sh(t, plan, "echo x >>"+file); status == 0 {
				t.Errorf("%s: %s was written: %s", name, file, out)
			}
			if status, out := p.sh(t, nil, "echo x >>"+file); status != 0 {
				t.Errorf("%s: control: exit status %d: %s", name, status, out)
			}
		}
	}
}
