package attack_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/policy"
)

// worktree returns a place whose writable tree is a linked worktree of a repository beside it.
// The git directory is writable as with the git preset. Both worktrees have their own
// configuration.
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
	before := plan.Snapshot(thisHost())
	if status, out := p.sh(t, plan, `cd ../out/main/.git/worktrees/wt && echo x >index.lock && mv index.lock index && mkdir rebase-merge && echo 'exec x' >rebase-merge/git-rebase-todo`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	if c := before.Changes(); len(c) != 1 || !strings.HasSuffix(c[0].Path, "/wt/rebase-merge") {
		t.Errorf("reported %v", c)
	}
}

// TestWorktreesAreWatched: changes of the pointers of linked worktrees and submodules are
// reported.
func TestWorktreesAreWatched(t *testing.T) {
	needMounts(t)
	p := repository(t)
	plan := p.mountPlan()
	before := plan.Snapshot(thisHost())
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

// TestLinkedWorktree: the writable tree is a linked worktree, and its repository is beside it.
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

// throughLinks returns a place whose repositories are found through links in the tree: by a
// link's target, by "..", and by a directory that the link names.
func throughLinks(t *testing.T) *place {
	p := newPlace(t)
	for link, to := range map[string]string{"far": "deep/er", "git": "deep", "team": "settings"} {
		if err := os.Symlink(to, p.in+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	gitDir(t, p.in+"/deep/dir")
	gitDir(t, p.in+"/deep/common")
	write(t, p.in+"/deep/er/x", "")
	write(t, p.in+"/settings/x.cfg", "")
	write(t, p.in+"/deep/common/config", "[include]\n\tpath = ../../team/x.cfg\n")
	write(t, p.in+"/deep/dir/commondir", "../../git/common\n")
	write(t, p.in+"/.git", "gitdir: far/../dir\n")
	write(t, p.in+"/sub/.git/commondir", "../../git/common\n")
	write(t, p.in+"/sub/.git/HEAD", "ref: refs/heads/x\n")
	return p
}

// TestPointersThroughLinks: git follows links to a repository and to included files, and
// resolves ".." after a link as the file system does.
func TestPointersThroughLinks(t *testing.T) {
	needMounts(t)
	held := []breach{
		{"its pointer", `echo x >>deep/dir/commondir`},
		{"the shared configuration", `echo x >>deep/common/config`},
		{"what that includes", `echo x >>settings/x.cfg`},
	}
	breachAll(t, throughLinks, held)
	breachAll(t, func(t *testing.T) *place { // .git as a directory may have a commondir, too
		p := throughLinks(t)
		if err := os.Remove(p.in + "/.git"); err != nil {
			t.Fatal(err)
		}
		return p
	}, held[1:])
	p := throughLinks(t)
	write(t, p.in+"/nested/.git", "gitdir: ../gone/dir\n")
	plan := p.mountPlan()
	before := plan.Snapshot(thisHost())
	if status, out := p.sh(t, plan, `mkdir -p gone/dir && for l in far git team; do rm $l && mkdir $l || exit; done`); status != 0 {
		t.Fatalf("exit status %d: %s", status, out)
	}
	var got []string
	for _, c := range before.Changes() {
		got = append(got, strings.TrimPrefix(c.Path, p.in+"/"))
	}
	if want := []string{"far", "git", "gone", "team"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
}
