package attack_test

import (
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// gitDir makes what git recognizes as a git directory.
func gitDir(t *testing.T, dir string) {
	t.Helper()
	write(t, dir+"/HEAD", "ref: refs/heads/main\n")
	write(t, dir+"/config", "[core]\n\tbare = false\n")
	write(t, dir+"/hooks/pre-commit.sample", "#!/bin/sh\n")
	for _, sub := range []string{"objects", "refs"} {
		if err := os.MkdirAll(dir+"/"+sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// repository returns a place with a repository, one of its linked worktrees, a submodule, a
// nested repository, and files of editors.
func repository(t *testing.T) *place {
	p := newPlace(t)
	gitDir(t, p.in+"/.git")
	write(t, p.in+"/.git/worktrees/wt/commondir", "../..\n")
	write(t, p.in+"/.git/worktrees/wt/HEAD", "ref: refs/heads/wt\n")
	write(t, p.in+"/wt/.git", "gitdir: "+p.in+"/.git/worktrees/wt\n")
	gitDir(t, p.in+"/.git/modules/libs/foo")
	write(t, p.in+"/libs/foo/.git", "gitdir: ../../.git/modules/libs/foo\n")
	gitDir(t, p.in+"/nested/.git")
	write(t, p.in+"/.git/lazygit.yml", "x\n")
	write(t, p.in+"/.git/glab-cli/config.yml", "x\n")
	write(t, p.in+"/.git/sl/config", "x\n")
	write(t, p.in+"/.envrc", "echo\n")
	write(t, p.in+"/.vscode/tasks.json", "{}\n")
	write(t, p.in+"/.vscode/other.json", "{}\n")
	write(t, p.in+"/lint", "#!/bin/sh\n")
	if err := os.Symlink("../../lint", p.in+"/.git/hooks/post-commit"); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestProtected(t *testing.T) {
	needMounts(t)
	breachAll(t, repository, []breach{
		{"a hook", `echo x >.git/hooks/pre-commit`},
		{"a hook by rename", `echo x >h && mv h .git/hooks/pre-commit`},
		{"a hook by link", `echo x >h && ln -s ../../h .git/hooks/pre-commit`},
		{"the hooks' directory", `rm -rf .git/hooks && mkdir .git/hooks && echo x >.git/hooks/pre-commit`},
		{"the hooks' directory renamed", `mv .git/hooks .git/h && mkdir .git/hooks`},
		{"another directory in its place", `mkdir h; rm -f .git/hooks/*; mv -T h .git/hooks`},
		{"a hook kept in the tree", `echo x >>lint`},
		{"a hook kept in the tree, by rename", `echo x >l && mv l lint`},
		{"hooks' mode", `chmod 777 .git/hooks/pre-commit.sample`},
		{"the configuration", `echo x >>.git/config`},
		{"the configuration as git writes it", `cp .git/config .git/config.lock && mv .git/config.lock .git/config`},
		{"the configuration removed", `rm -f .git/config && ! test -e .git/config`},
		{"the git directory renamed", `mv .git git2 && cp -r git2 .git && echo x >>.git/config`},
		{"the git directory exchanged", `cp -r .git git2 && mv git2 .git2 && mv .git git3 && mv .git2 .git`},
		{"through /proc/self/cwd", `echo x >>/proc/self/cwd/.git/config`},
		{"through /proc/self/root", `echo x >>"/proc/self/root$PWD/.git/config"`},
		{"through an open descriptor", `exec 3<.git/config && echo x >>/proc/self/fd/3`},
		{"a hard link", `ln .git/config c && echo x >>c`},
		{"by truncate", `truncate -s 0 .git/config`},
		{"by copying a range", `dd if=/dev/zero of=.git/config count=1 conv=notrunc status=none`},
		{"a submodule's configuration", `echo x >>.git/modules/libs/foo/config`},
		{"a submodule's hook", `echo x >.git/modules/libs/foo/hooks/post-checkout`},
		{"the submodules' directory renamed", `mv .git/modules .git/m && mkdir -p .git/modules/libs/foo`},
		{"a submodule's directory renamed", `mv .git/modules/libs .git/modules/l`},
		{"a nested repository's hook", `echo x >nested/.git/hooks/pre-commit`},
		{"a nested repository's configuration", `echo x >>nested/.git/config`},
		{"a nested git directory renamed", `mv nested/.git nested/g`},
		{"lazygit's settings", `echo evil >>.git/lazygit.yml`},
		{"glab's settings", `echo evil >>.git/glab-cli/config.yml`},
		{"glab's settings by rename", `echo evil >g && mv g .git/glab-cli/config.yml`},
		{"Sapling's settings", `echo evil >>.git/sl/config`},
		{"Sapling's settings, by renaming their directory", `mv .git/sl .git/s && mkdir .git/sl && echo evil >.git/sl/config`},
		{"a direnv file", `echo evil >>.envrc`},
		{"a direnv file by rename", `echo evil >e && mv e .envrc`},
		{"an editor's tasks", `echo evil >.vscode/tasks.json`},
		{"remounting", `mount -o remount,bind,rw .git/config && echo x >>.git/config`},
		{"unmounting", `umount -l .git/config && echo x >>.git/config`},
		{"unmounting all", `umount -l .git && echo x >>.git/config`},
		{"moving the mount", `mkdir m && mount --move .git m && echo x >>.git/config`},
		{"binding over", `mkdir m && echo evil >m/config && mount --bind m/config .git/config && grep evil .git/config`},
		{"its own namespaces", `unshare -rm sh -c 'umount -l .git/config; mount -o remount,bind,rw .git/config; echo x >>.git/config'`},
		{"the supervisor's namespace", `nsenter -t $PPID -m sh -c 'echo x >>.git/config'`},
		{"process 1's namespace", `nsenter -t 1 -m true`},
	}, "remounting", "unmounting", "unmounting all", "moving the mount", "binding over", "its own namespaces",
		"the supervisor's namespace", "process 1's namespace")
}

// TestProtectedAround: what git reads or runs in a writable directory inside a repository, or
// inside a linked worktree, is protected. The controls: other files there are not, and without
// the repository none is.
func TestProtectedAround(t *testing.T) {
	needMounts(t)
	for _, tree := range []string{"", "wt/"} {
		p := repository(t)
		root, sub := path.Join(p.in, tree), path.Join(p.in, tree, "sub")
		write(t, p.in+"/.git/config", "[include]\n\tpath = ../"+tree+"sub/config\n")
		for _, name := range []string{"config", "hook", "other"} {
			write(t, sub+"/"+name, "\n")
		}
		if err := os.Symlink("../../"+tree+"sub/hook", p.in+"/.git/hooks/pre-push"); err != nil {
			t.Fatal(err)
		}
		p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(a resolve.Path) bool { return a.Path == p.in })
		p.allow(t, policy.Read|policy.Exec, p.in)
		p.allow(t, policy.Read|policy.Write, sub)
		for _, around := range []string{root, ""} {
			plan := p.mountsPlan(t, enforce.Options{Repository: around})
			for _, name := range []string{"config", "hook", "other"} {
				status, out := p.sh(t, plan, "echo x >>"+sub+"/"+name)
				if held := around != "" && name != "other"; (status != 0) != held {
					t.Errorf("around %q: %s/%s: exit status %d: %s", around, sub, name, status, out)
				}
			}
		}
	}
}

func TestProtectedWorksBeside(t *testing.T) {
	needMounts(t)
	p := repository(t)
	plan := p.mountPlan()
	for _, script := range []string{
		`cat .git/config .git/hooks/pre-commit.sample .envrc wt/.git >/dev/null`,
		`echo x >.git/index.lock && mv .git/index.lock .git/index`,
		`echo x >.git/HEAD.lock && mv .git/HEAD.lock .git/HEAD`,
		`mkdir -p .git/objects/ab && echo x >.git/objects/ab/t && mv .git/objects/ab/t .git/objects/ab/cd`,
		`mkdir .git/worktrees/new && echo ../.. >.git/worktrees/new/commondir && rm -r .git/worktrees/new`,
		`mkdir -p fresh/.git/hooks && echo x >fresh/.git/config && echo x >fresh/.git/hooks/post-commit && mv fresh fresher && rm -r fresher`,
		`echo x >.vscode/other.json && mv .vscode/other.json .vscode/more.json`,
		`mv nested/.git/HEAD nested/.git/H && mv nested/.git/H nested/.git/HEAD`,
		`mv wt wt2 && mv wt2 wt`,
		`rm -r wt .git/worktrees/wt libs`,
	} {
		if status, out := p.sh(t, plan, script); status != 0 {
			t.Errorf("%s: exit status %d: %s", script, status, out)
		}
	}
}

// TestProtectedMissing: missing files are made inside, and reported afterwards.
func TestProtectedMissing(t *testing.T) {
	needMounts(t)
	p := repository(t)
	p.deny(p.in + "/secret")
	p.deny(p.in + "/**/*.pem")
	write(t, p.in+"/exrc", "\n")
	for link, to := range map[string]string{".nvim.lua": "scripts/nvim", ".git/hooks/pre-push": "../../check", ".exrc": "link", "link": "exrc"} {
		if err := os.Symlink(to, p.in+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	plan := p.mountPlan()
	before := plan.Snapshot(thisHost())
	if c := before.Changes(); len(c) != 0 {
		t.Errorf("before the command: %v", c)
	}
	if status, out := p.sh(t, plan, `echo evil >.mcp.json && echo ../evil >.git/commondir && echo x >secret && echo x >sub/a.pem && echo x >other &&
		mkdir scripts && echo evil >.nvim.lua && echo evil >check && rm link && echo evil >link`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	var got []string
	for _, c := range before.Changes() {
		got = append(got, strings.TrimPrefix(c.Path, p.in+"/"))
		if c.New == (path.Base(c.Path) == "link") {
			t.Errorf("%s: new %v", c.Path, c.New)
		}
	}
	want := []string{".git/commondir", ".mcp.json", "check", "link", "scripts/nvim", "secret", "sub/a.pem"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapDenyMissing }) {
		t.Error("no gap for what does not exist yet")
	}
}

// TestWatched: what can't be protected is reported.
func TestWatched(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	caps := enforce.Probe()
	caps.MountNS = false
	plan := enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{Accepted: []string{enforce.GapProtect}, Compare: []string{p.in + "/zsbx-1"}})
	before := plan.Snapshot(thisHost())
	if status, out := p.sh(t, plan, `mkdir -p zsbx-1/sessions`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	if c := before.Changes(); len(c) != 1 || c[0].Path != p.in+"/zsbx-1" || !c[0].New {
		t.Errorf("reported %v", c)
	}
}

// TestUnprotected: without mounts the same files are reported.
func TestUnprotected(t *testing.T) {
	needLandlock(t, 1)
	p := repository(t)
	plan := p.plan()
	if !slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapProtect && g.Kind == enforce.Hardening }) {
		t.Errorf("no gap: %v", plan.Gaps)
	}
	before := plan.Snapshot(thisHost())
	if status, out := p.sh(t, plan, `echo >>.git/config; echo >>.git/hooks/pre-commit.sample; mv nested n2; mkdir -p nested/.git; echo evil >nested/.git/config`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	var got []string
	for _, c := range before.Changes() {
		got = append(got, strings.TrimPrefix(c.Path, p.in+"/"))
	}
	want := []string{".git/config", ".git/hooks", "nested/.git/config"} // git runs nothing in n2
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestReplacedNested: replacing a whole nested repository, which the mounts don't prevent, is
// reported.
func TestReplacedNested(t *testing.T) {
	needMounts(t)
	p := repository(t)
	plan := p.mountPlan()
	before := plan.Snapshot(thisHost())
	if status, out := p.sh(t, plan, `mv nested n2 && mkdir -p nested/.git && echo evil >nested/.git/config`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	want := []enforce.Change{{Path: p.in + "/nested/.git/config"}} // in n2 git runs nothing
	if c := before.Changes(); !slices.Equal(c, want) {
		t.Errorf("got %v, want %v", c, want)
	}
}

// BenchmarkProtect measures what finding and recording protected files adds to a start.
func BenchmarkProtect(b *testing.B) {
	dir := b.TempDir()
	p := &place{dir: dir, in: dir}
	for _, d := range []string{"/.git/objects", "/.git/refs", "/.git/hooks", "/src", "/doc", "/test"} {
		if err := os.MkdirAll(dir+d, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	for _, f := range []string{"/.git/HEAD", "/.git/config", "/src/a", "/doc/b", "/README"} {
		if err := os.WriteFile(dir+f, nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	st, err := os.Stat(dir)
	if err != nil {
		b.Fatal(err)
	}
	sys := st.Sys().(*syscall.Stat_t)
	p.policy = &resolve.Resolved{OS: "linux", Dir: dir, Net: resolve.ResolvedNet{Mode: resolve.NetOpen},
		Paths: []resolve.Path{{Path: dir, Mode: os.ModeDir, ID: host.FileID{Dev: sys.Dev, Ino: sys.Ino}, Access: policy.Read | policy.Write,
			Rule: policy.Rule{Origin: policy.Origin{Source: "--rw"}}}}}
	caps := enforce.Probe()
	h := thisHost()
	b.Run("without", func(b *testing.B) {
		caps := caps
		caps.MountNS = false
		for b.Loop() {
			enforce.NewPlan(p.policy, caps, h, enforce.Options{Accepted: []string{enforce.GapProtect}})
		}
	})
	plan := enforce.NewPlan(p.policy, caps, h, enforce.Options{})
	b.Run("with", func(b *testing.B) {
		for b.Loop() {
			enforce.NewPlan(p.policy, caps, h, enforce.Options{})
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			plan.Snapshot(h)
		}
	})
}
