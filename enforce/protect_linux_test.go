package enforce_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/policy"
)

// gitDir makes what tells git of a git directory.
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

// Repository is a place with a repository, one of its linked worktrees, a
// submodule, a nested repository, and files of editors.
func repository(t *testing.T) *place {
	p := newPlace(t)
	gitDir(t, p.in+"/.git")
	write(t, p.in+"/.git/worktrees/wt/commondir", "../..\n")
	write(t, p.in+"/.git/worktrees/wt/HEAD", "ref: refs/heads/wt\n")
	write(t, p.in+"/wt/.git", "gitdir: "+p.in+"/.git/worktrees/wt\n")
	gitDir(t, p.in+"/.git/modules/libs/foo")
	write(t, p.in+"/libs/foo/.git", "gitdir: ../../.git/modules/libs/foo\n")
	gitDir(t, p.in+"/nested/.git")
	write(t, p.in+"/.envrc", "echo\n")
	write(t, p.in+"/.vscode/tasks.json", "{}\n")
	write(t, p.in+"/.vscode/other.json", "{}\n")
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

// TestIncluded: what the configuration includes is configuration.
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
	before := plan.Snapshot(host())
	if status, out := p.sh(t, plan, `echo x >>free.cfg && echo x >missing.cfg && cat team.cfg conf/*.cfg >/dev/null && mkdir dir && echo x >dir/x.cfg`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	var got []string
	for _, c := range before.Changes() {
		got = append(got, strings.TrimPrefix(c.Path, p.in+"/"))
	}
	if want := []string{"dir", "dir/x.cfg", "missing.cfg"}; !slices.Equal(got, want) {
		t.Errorf("told of %q, want %q", got, want)
	}
}

// worktree is a place whose writable tree is a linked worktree of a repository
// beside it, which has its git directory as the git preset gives it. Both
// worktrees have a configuration of their own.
func worktree(t *testing.T) *place {
	p := newPlace(t)
	main := p.out + "/main/.git"
	gitDir(t, main)
	for _, name := range []string{"wt", "other"} {
		write(t, main+"/worktrees/"+name+"/commondir", "../..\n")
		write(t, main+"/worktrees/"+name+"/gitdir", p.in+"/.git\n")
		write(t, main+"/worktrees/"+name+"/HEAD", "ref: refs/heads/wt\n")
		write(t, main+"/worktrees/"+name+"/config.worktree", "[core]\n")
	}
	write(t, p.in+"/.git", "gitdir: "+main+"/worktrees/wt\n")
	p.allow(t, policy.Read|policy.Write|policy.Exec, main)
	return p
}

// TestWorktreeConfig: git reads a linked worktree's own configuration after
// that of the repository.
func TestWorktreeConfig(t *testing.T) {
	needMounts(t)
	breachAll(t, worktree, []breach{
		{"its configuration", `echo x >>../out/main/.git/worktrees/wt/config.worktree`},
		{"its configuration replaced", `cd ../out/main/.git/worktrees/wt && cp config.worktree c && echo x >>c && mv c config.worktree`},
		{"its directory renamed", `cd ../out/main/.git/worktrees && mv wt w && cp -r w wt && echo x >>wt/config.worktree`},
		{"the worktrees' directory renamed", `cd ../out/main/.git && mv worktrees w && cp -r w worktrees && echo x >>worktrees/wt/config.worktree`},
		{"its pointer to the repository", `echo /x >../out/main/.git/worktrees/wt/commondir`},
		{"the pointer back", `echo /x >../out/main/.git/worktrees/wt/gitdir`},
		{"another's configuration", `echo x >>../out/main/.git/worktrees/other/config.worktree`},
	})
	p := worktree(t)
	plan := p.mountPlan()
	before := plan.Snapshot(host())
	if status, out := p.sh(t, plan, `cd ../out/main/.git/worktrees/wt && echo x >index.lock && mv index.lock index && mkdir rebase-merge && echo 'exec x' >rebase-merge/git-rebase-todo`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	if c := before.Changes(); len(c) != 1 || !strings.HasSuffix(c[0].Path, "/wt/rebase-merge/git-rebase-todo") {
		t.Errorf("told of %v", c)
	}
}

// TestLinkedConfig: a configuration that is a link includes as any other.
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

// TestUnreadConfig: a configuration that can't be read to its end is named.
func TestUnreadConfig(t *testing.T) {
	needMounts(t)
	for config, want := range map[string]bool{
		"[core]\n\tbare = false\n":                          false,
		"[core]\n\tx = \"y\n[include]\n\tpath = ../a.cfg\n": true,
		"[include]\n\tpath = ~root/x\n":                     true,
	} {
		p := repository(t)
		write(t, p.in+"/.git/config", config)
		got := slices.ContainsFunc(p.mountPlan().Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapProtect })
		if got != want {
			t.Errorf("%q: told: %v", config, got)
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

// TestProtectedMissing has what does not exist made inside, and told
// afterwards.
func TestProtectedMissing(t *testing.T) {
	needMounts(t)
	p := repository(t)
	p.deny(p.in + "/secret")
	p.deny(p.in + "/**/*.pem")
	plan := p.mountPlan()
	before := plan.Snapshot(host())
	if c := before.Changes(); len(c) != 0 {
		t.Errorf("before the command: %v", c)
	}
	if status, out := p.sh(t, plan, `echo evil >.mcp.json && echo ../evil >.git/commondir && echo x >secret && echo x >sub/a.pem && echo x >other`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	var got []string
	for _, c := range before.Changes() {
		got = append(got, strings.TrimPrefix(c.Path, p.in+"/"))
		if !c.New {
			t.Errorf("%s is not new", c.Path)
		}
	}
	want := []string{".git/commondir", ".mcp.json", "secret", "sub/a.pem"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if !slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapDenyMissing }) {
		t.Error("no gap tells of what does not exist yet")
	}
}

// TestWatched: what can't be held is told.
func TestWatched(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	caps := enforce.Probe()
	caps.MountNS = false
	plan := enforce.NewPlanWith(p.policy, caps, host(), enforce.Options{NoProtect: true, Watch: []string{p.in + "/zsbx-1"}})
	before := plan.Snapshot(host())
	if status, out := p.sh(t, plan, `mkdir -p zsbx-1/sessions`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	if c := before.Changes(); len(c) != 1 || c[0].Path != p.in+"/zsbx-1" || !c[0].New {
		t.Errorf("told of %v", c)
	}
}

// TestUnprotected has the same files told when there are no mounts.
func TestUnprotected(t *testing.T) {
	needLandlock(t, 1)
	p := repository(t)
	plan := p.plan()
	if !slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapProtect && g.Kind == enforce.Hardening }) {
		t.Errorf("no gap: %v", plan.Gaps)
	}
	before := plan.Snapshot(host())
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

// TestWorktreesAreWatched has the pointers of linked worktrees and submodules
// changed, which is told.
func TestWorktreesAreWatched(t *testing.T) {
	needMounts(t)
	p := repository(t)
	plan := p.mountPlan()
	before := plan.Snapshot(host())
	if status, out := p.sh(t, plan, `echo ../../../evil >.git/worktrees/wt/commondir && echo "gitdir: $PWD/evil" >wt/.git && rm -r libs`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	var got []string
	for _, c := range before.Changes() {
		got = append(got, strings.TrimPrefix(c.Path, p.in+"/"))
	}
	if want := []string{".git/worktrees/wt/commondir", "wt/.git"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLinkedWorktree has a linked worktree as the writable tree, and its
// repository beside it.
func TestLinkedWorktree(t *testing.T) {
	needMounts(t)
	breachAll(t, func(t *testing.T) *place {
		p := newPlace(t)
		gitDir(t, p.dir+"/main/.git")
		write(t, p.dir+"/main/.git/worktrees/in/commondir", "../..\n")
		write(t, p.in+"/.git", "gitdir: "+p.dir+"/main/.git/worktrees/in\n")
		p.allow(t, policy.Read|policy.Write, p.dir+"/main/.git")
		p.policy.Paths[len(p.policy.Paths)-1].Rule.Origin.Source = "preset git"
		return p
	}, []breach{
		{"the pointer", `echo "gitdir: $PWD/evil" >.git`},
		{"the pointer by rename", `echo "gitdir: $PWD/evil" >e && mv e .git`},
		{"the configuration", `echo x >>../main/.git/config`},
		{"a hook", `echo x >../main/.git/hooks/pre-commit`},
	})
}

// TestReplacedNested has a whole nested repository replaced, which the mounts
// don't prevent, and told.
func TestReplacedNested(t *testing.T) {
	needMounts(t)
	p := repository(t)
	plan := p.mountPlan()
	before := plan.Snapshot(host())
	if status, out := p.sh(t, plan, `mv nested n2 && mkdir -p nested/.git && echo evil >nested/.git/config`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	want := []enforce.Change{{Path: p.in + "/nested/.git/config"}} // in n2 git runs nothing
	if c := before.Changes(); !slices.Equal(c, want) {
		t.Errorf("got %v, want %v", c, want)
	}
}

func TestMountsRefused(t *testing.T) {
	needMounts(t)
	p := repository(t)
	plan := p.mountPlan()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagUnshare, Name: "unshare(2)", Errno: syscall.EPERM}, "unshare(2): operation not permitted; "},
		{&fork.StepError{Stage: "command", Tag: mounts.TagOpen, Name: "/x", Errno: syscall.ENOENT}, ""},
		{&fork.StepError{Stage: "keeper", Tag: mounts.TagOpen, Name: "/x", Errno: syscall.EMFILE}, ""}, // a shortage
		{&fork.StepError{Stage: "exec", Name: "/bin/true", Errno: syscall.EACCES}, ""},
		{errors.New("other"), ""},
		{nil, ""},
	} {
		got := plan.MountsRefused(c.err)
		if !strings.HasPrefix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
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

// TestSwapped has a path replaced between the plan and the start: the mounts
// never land on another file.
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
			_, err := plan.Start(command(p, "true"))
			var se *fork.StepError
			if !errors.As(err, &se) || se.Tag != mounts.TagOpen {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}

// BenchmarkProtect measures what looking for protected files and remembering
// them adds to a start.
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
	p.policy = &policy.Resolved{OS: "linux", Dir: dir, Net: policy.ResolvedNet{Mode: policy.NetOpen},
		Paths: []policy.Path{{Path: dir, Mode: os.ModeDir, ID: policy.FileID{Dev: sys.Dev, Ino: sys.Ino}, Access: policy.Read | policy.Write,
			Rule: policy.Rule{Origin: policy.Origin{Source: "--rw"}}}}}
	caps := enforce.Probe()
	h := host()
	b.Run("without", func(b *testing.B) {
		caps := caps
		caps.MountNS = false
		for b.Loop() {
			enforce.NewPlanWith(p.policy, caps, h, enforce.Options{NoProtect: true})
		}
	})
	plan := enforce.NewPlanWith(p.policy, caps, h, enforce.Options{})
	b.Run("with", func(b *testing.B) {
		for b.Loop() {
			enforce.NewPlanWith(p.policy, caps, h, enforce.Options{})
		}
	})
	b.Run("snapshot", func(b *testing.B) {
		for b.Loop() {
			plan.Snapshot(h)
		}
	})
}
