package attack_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// repo is a shell function that makes a git directory.
const repo = `repo() { mkdir -p "$1/objects" "$1/refs" "$1/hooks" && echo ref >"$1/HEAD" && echo x >"$1/config"; }; `

// told runs a script under a plan and returns what is reported, without the place's directory.
func told(t *testing.T, p *place, plan *enforce.Plan, script string) string {
	t.Helper()
	before := plan.Snapshot(thisHost())
	if status, out := p.sh(t, plan, repo+script); status != 0 {
		t.Fatalf("%s: exit status %d: %s", script, status, out)
	}
	var out []string
	for _, c := range before.Changes() {
		what := "changed"
		if c.New {
			what = "new"
		}
		out = append(out, strings.TrimPrefix(c.Path, p.in+"/")+" "+what)
	}
	return strings.Join(out, ", ")
}

// TestNewRepositories: new repositories near the top of a writable tree are reported, as
// docs/security.md says.
func TestNewRepositories(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`true`, ""},
		{`echo x >nested/.git/index; echo x >wt/file; mkdir -p new/dir; git --version >/dev/null || true`, ""},
		{`repo sub/.git`, "sub/.git/config new"},
		{`echo x >sub/.zsbx.toml`, "sub/.zsbx.toml new"},
		{`mkdir sub/.git && echo "[core]" >sub/.git/config`, ""},               // git runs nothing in it
		{`mv nested moved; mkdir new && repo new/.git`, ""},                    // new directories are not checked
		{`repo sub; repo "$PWD"; repo .git/modules/evil; repo a/b/c/.git`, ""}, // nor are bare repositories and deeper ones
	} {
		t.Run(c.script, func(t *testing.T) {
			needLandlock(t, 1)
			p := repository(t)
			if got, want := told(t, p, p.plan(), c.script), strings.ReplaceAll(c.want, "$IN", p.in); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// TestGitlinks: what git status runs in the working tree's own directory is reported, at any
// depth, and in any form of the index.
func TestGitlinks(t *testing.T) {
	needLandlock(t, 1)
	testkit.NeedProgram(t, "git")
	const (
		copied = `export HOME=/nonexistent; mkdir -p a/b/c && cp -r nested a/b/c/d; `
		evil   = `printf '[core]\nfsmonitor = "touch %s/ran; false"\n' >>a/b/c/d/.git/config; `
		made   = copied + evil
		link   = `git update-index --add --cacheinfo 160000,$(cat nested/.git/refs/heads/*),a/b/c/d`
		other  = `git update-index --force-remove other`
	)
	for _, c := range []struct{ name, script, want string }{
		{"a gitlink", made + link, "a/b/c/d/.git/config new"},
		{"compressed names", made + other + " && git update-index --index-version 4 && " + link, "a/b/c/d/.git/config new"},
		{"a shared index", made + link + " && git update-index --split-index", "a/b/c/d/.git/config new"},
		{"not in the index", made + other, ""},
		{"in two commands", strings.ReplaceAll(link, "a/b/c/d", "nested"), "nested/.git/config new"},
		{"a plain one", copied + link, ""},
		{"by a plain one", copied + "cp -r nested a/b/c/d/e; " + strings.ReplaceAll(evil, "a/b/c/d", "a/b/c/d/e") +
			"git -C a/b/c/d update-index --add --cacheinfo 160000,$(cat nested/.git/refs/heads/*),e; " + link, "a/b/c/d/e/.git new"},
		{"by a new one", copied + evil + "git init -q new; mv a new; cd new; " + strings.ReplaceAll(link, "nested", "../nested"), "new/a/b/c/d/.git new"},
		{"there before", other, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			outside := func(script string) {
				if status, out := p.sh(t, nil, "export HOME=/nonexistent; "+script); status != 0 {
					t.Skipf("git: %s", out)
				}
			}
			outside(`git init -q . && echo x >file && git add file && echo y >other && git add other && mkdir new && git init -q nested &&
				git -C nested -c user.email=a -c user.name=b commit -q --allow-empty -m x`)
			if c.name == "there before" {
				outside(`git add nested 2>/dev/null; printf '[pull]\nrebase = true\n' >>nested/.git/config`)
			}
			if c.name == "in two commands" {
				outside(`printf '[core]\nfsmonitor = "touch ` + p.in + `/ran; false"\n' >>nested/.git/config`)
			}
			if got := told(t, p, p.plan(), strings.ReplaceAll(c.script, "%s", p.in)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			outside("git status >/dev/null; cd new 2>/dev/null && git status >/dev/null")
			if _, err := os.Lstat(p.in + "/ran"); (err == nil) != (c.want != "") {
				t.Errorf("control: git status ran what the repository says: %t", err == nil)
			}
		})
	}
}

// TestSubmodules: git status looks into each submodule, at any place, and uses the settings
// there.
func TestSubmodules(t *testing.T) {
	needMounts(t)
	testkit.NeedProgram(t, "git")
	const evil = `; printf '[core]\nfsmonitor = "touch %s/ran; false"\n' >>`
	for _, c := range []struct{ before, script, want string }{
		{"rm a/b/c/.git", "cp -r lib/.git a/b/c" + evil + "a/b/c/.git/config", "a/b/c/.git/config new"},
		{"rm a/b/c/.git", "cp -r lib/.git a/b/c", ""},
		{"true", "cp -r lib lib2" + evil + "lib2/.git/config; echo gitdir: ../../../lib2/.git >a/b/c/.git", "a/b/c/.git changed"},
		{"rm a/b/c/.git; cp -r lib/.git a/b/c", "(true" + evil + "a/b/c/.git/config) 2>/dev/null; true", ""},
	} {
		p := newPlace(t)
		outside := func(script string) {
			if status, out := p.sh(t, nil, "export HOME=/nonexistent; git() { command git -c user.email=a -c user.name=b -c protocol.file.allow=always \"$@\"; }; "+script); status != 0 {
				t.Fatalf("git: %s", out)
			}
		}
		outside(`git init -q . && git init -q lib && git -C lib commit -q --allow-empty -m x && git submodule --quiet add ./lib a/b/c && git commit -qm x; ` + c.before)
		if got := told(t, p, p.mountPlan(), strings.ReplaceAll(c.script, "%s", p.in)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.script, got, c.want)
		}
		outside("git status >/dev/null")
		if _, err := os.Lstat(p.in + "/ran"); (err == nil) != (c.want != "") {
			t.Errorf("control: git status ran what the repository says: %t", err == nil)
		}
	}
}

// TestContinued: when a rebase or a cherry-pick stops, git stores the merge program in a file,
// and runs it when the user continues. For patches it stores the name of a file that it then
// writes.
func TestContinued(t *testing.T) {
	needLandlock(t, 1)
	testkit.NeedProgram(t, "git")
	const strategy = `mkdir git-merge-x && printf '#!/bin/sh\ntouch %s/ran' >git-merge-x/y && chmod +x git-merge-x/y; `
	for _, c := range []struct{ stop, script, want string }{
		{"rebase side", strategy + "echo x/y >.git/rebase-merge/strategy", ".git/rebase-merge changed"},
		{"cherry-pick side~1 side", strategy + "git config -f .git/sequencer/opts options.strategy x/y", ".git/sequencer/opts new"},
		{"rebase --apply side", `echo "'--build-fake-ancestor=%s/ran'" >.git/rebase-apply/apply-opt`, ".git/rebase-apply changed"},
		{"rebase side", "git status; echo y >f", ""},
		{"rebase --apply side", "git status; echo y >f", ""},
		{"cherry-pick side~1 side", "git status; echo y >f", ""},
	} {
		p := newPlace(t)
		outside := func(script string) {
			p.sh(t, nil, "export HOME=/nonexistent GIT_EDITOR=true; git() { command git -c user.email=a -c user.name=b \"$@\"; }; "+script)
		}
		outside(`git init -q . && echo 1 >f && git add f && git commit -qm 1 && git checkout -qb side && echo 2 >f && git commit -qam 2 && echo 2 >g &&
			git add g && git commit -qm g && git checkout -q - && echo 3 >f && git commit -qam 3 && echo 3 >h && git add h && git commit -qm h; git ` + c.stop)
		if got := told(t, p, p.plan(), strings.ReplaceAll(c.script, "%s", p.in)); got != c.want {
			t.Errorf("%s: got %q, want %q", c.stop, got, c.want)
		}
		verb, _, _ := strings.Cut(c.stop, " ")
		outside("echo y >f; git add f; git " + verb + " --continue")
		if _, err := os.Lstat(p.in + "/ran"); (err == nil) != (c.want != "") {
			t.Errorf("control: git %s --continue ran what was written down: %t", verb, err == nil)
		}
	}
}

// TestOldRemotes: if a repository's configuration has no remote, git push takes it from
// old-style files, and runs the hooks of the repository that they name.
func TestOldRemotes(t *testing.T) {
	needLandlock(t, 1)
	testkit.NeedProgram(t, "git")
	const hook = `cp -r bare evil && printf '#!/bin/sh\ntouch %s/ran' >evil/hooks/update && chmod +x evil/hooks/update; `
	for script, want := range map[string]string{
		hook + `mkdir .git/remotes && printf 'URL: evil\nPush: HEAD:refs/heads/x\n' >.git/remotes/origin`: ".git/remotes new",
		hook + "mkdir -p .git/branches && echo evil >.git/branches/origin":                                ".git/branches new",
		hook: "",
	} {
		p := newPlace(t)
		outside := func(script string) {
			p.sh(t, nil, "export HOME=/nonexistent; git() { command git -c user.email=a -c user.name=b \"$@\"; }; "+script)
		}
		outside("git init -q . && rm -rf .git/branches && git init -q --bare bare && git commit -q --allow-empty -m x")
		if got := told(t, p, p.plan(), strings.ReplaceAll(script, "%s", p.in)); got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
		outside("git push -q || git push -q origin HEAD:refs/heads/x")
		if _, err := os.Lstat(p.in + "/ran"); (err == nil) != (want != "") {
			t.Errorf("control: git push ran the hook: %t", err == nil)
		}
	}
}

// BenchmarkChanges measures the report afterwards, in a repository of 100,000 files.
func BenchmarkChanges(b *testing.B) {
	for _, shape := range []string{"deep", "flat", "wide"} {
		b.Run(shape, func(b *testing.B) {
			dir := b.TempDir()
			for i := range 100_000 {
				sub := map[string]string{
					"deep": fmt.Sprintf("/a%d/b%d/c%d", i%20, i/20%20, i/400%20), "flat": "", "wide": fmt.Sprintf("/a%d/b%d", i/1000, i%1000/10),
				}[shape]
				if i < 10_000 || shape == "flat" {
					if err := os.MkdirAll(dir+sub, 0o755); err != nil {
						b.Fatal(err)
					}
				}
				if err := os.WriteFile(fmt.Sprintf("%s%s/f%d", dir, sub, i), nil, 0o600); err != nil {
					if os.MkdirAll(dir+sub, 0o755) != nil {
						b.Fatal(err)
					}
				}
			}
			h, err := host.ThisHost()
			if err != nil {
				b.Fatal(err)
			}
			id, mode := fileID(b, dir)
			r := &resolve.Resolved{OS: "linux", Dir: dir, Paths: []resolve.Path{{Path: dir, Mode: mode, ID: id,
				Access: policy.Read | policy.Write, Rule: policy.Rule{Path: dir, Origin: policy.Origin{Source: "--rw"}}}}}
			plan := enforce.NewPlan(r, enforce.Probe(), &h, enforce.Options{})
			b.Run("plan", func(b *testing.B) {
				for b.Loop() {
					plan = enforce.NewPlan(r, enforce.Probe(), &h, enforce.Options{})
				}
			})
			before := plan.Snapshot(&h)
			b.Run("after", func(b *testing.B) {
				for b.Loop() {
					if c := before.Changes(); slices.ContainsFunc(c, func(c enforce.Change) bool { return c.New }) {
						b.Fatal(c)
					}
				}
			})
		})
	}
}

// TestGitlinkLater: a repository that came into the index as a plain one is protected from the
// next command, at any place and without .gitmodules.
func TestGitlinkLater(t *testing.T) {
	needMounts(t)
	testkit.NeedProgram(t, "git")
	const made = `export HOME=/nonexistent
		add() { git -C $1 update-index --add --cacheinfo 160000,$(git -C $1/$2 rev-parse HEAD),$2; }
		init() { git init -q $1 && git -C $1 -c user.email=a -c user.name=b commit -q --allow-empty -m x; }
		init . && init a/b/c/d && init a/b/c/d/e/f/g && init sub && init sub/e/f/g && add . a/b/c/d && add a/b/c/d e/f/g && add sub e/f/g`
	for _, in := range []string{"a/b/c/d", "a/b/c/d/e/f/g", "sub/e/f/g"} {
		for _, confined := range []bool{true, false} {
			p := newPlace(t)
			if status, out := p.sh(t, nil, made); status != 0 {
				t.Skipf("git: %s", out)
			}
			var plan *enforce.Plan
			if confined {
				plan = p.mountPlan()
			}
			evil := `printf '[core]\nfsmonitor = "touch '$PWD'/ran; false"\n' >>` + in + `/.git/config`
			if status, out := p.sh(t, plan, evil); (status != 0) != confined {
				t.Errorf("%s, confined %t: exit status %d: %s", in, confined, status, out)
			}
			p.sh(t, nil, "export HOME=/nonexistent; git status; git -C sub status")
			if _, err := os.Lstat(p.in + "/ran"); (err == nil) == confined {
				t.Errorf("%s, confined %t: git status ran what the repository says: %t", in, confined, err == nil)
			}
		}
	}
}

// TestGitlinkLink: if a link replaces a gitlink's repository, as developers do for one
// elsewhere, commands start, and what replaces the link is reported.
func TestGitlinkLink(t *testing.T) {
	needMounts(t)
	testkit.NeedProgram(t, "git")
	p := newPlace(t)
	if status, out := p.sh(t, nil, `export HOME=/nonexistent; git init -q . && git init -q a && git -C a -c user.email=a -c user.name=b commit -q --allow-empty -m x &&
		git add a 2>/dev/null && mv a b && ln -s b a`); status != 0 {
		t.Skipf("git: %s", out)
	}
	if got, want := told(t, p, p.mountPlan(), "cp -r b c && rm a && mv c a"), "a/.git changed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
