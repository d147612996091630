package protect

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

func TestPlainConfig(t *testing.T) {
	const head = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n# x\n; y\n\n"
	for _, c := range []struct {
		text string
		want bool
	}{
		{"", true}, {head, true},
		{head + "[remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", true},
		{head + "[branch \"a b\"]\nremote = origin\nmerge = refs/heads/a\n", true},
		{head + "fsmonitor = ./evil\n", false}, {head + "hooksPath = evil\n", false}, {head + "sshCommand = evil\n", false},
		{head + "pager\n", false}, {head + "[core] fsmonitor = ./evil\n", false}, {head + "[user] name = x ]\n", true}, {head + "[user\nname = x\n", false},
		{head + "[remote \"a\"] receivepack = evil # \"]\n", false}, {head + "[remote \"a\"]\nreceivepack = evil\n", false},
		{head + "[remote \"a\"]\nurl = ext::sh -c evil\n", false}, {head + "[remote \"a\"]\nurl = \"ext:\\072sh\"\n", false},
		{head + "bare = fal\\\nse\n", true}, {head + "bare = x \\\n\tfsmonitor = y\n", true},
		{head + "bare = x # \\\n\tfsmonitor = y\n", false}, {head + "[remote \"a\"]\nurl = ext\\\n::sh\n", false}, {head + "[remote.a]\nurl = \"ext:\":sh\n", false},
		{head + "[include]\npath = evil\n", false}, {head + "[alias]\nx = !evil\n", false},
		{head + "[filter \"x\"]\nclean = evil\n", false}, {head + "[submodule \"x\"]\nurl = x\n", false}, {"bare = false\n", false},
	} {
		if got := plainConfig(c.text); got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
}

// TestPlain: a repository that git itself makes is plain, until it has something that git would
// run or follow.
func TestPlain(t *testing.T) {
	git := testkit.NeedProgram(t, "git")
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, script string }{
		{"", "true"}, {"a hook", "echo x >hooks/pre-commit"}, {"hooks elsewhere", "mv hooks /tmp/$$ && ln -s /tmp/$$ hooks; rm -r /tmp/$$"},
		{"config elsewhere", "mv config c && ln -s c config"}, {"no config", "rm config"}, {"fsmonitor", "git config core.fsmonitor x"},
		{"commondir", "echo .. >commondir"}, {"a submodule", "mkdir -p modules/x"}, {"a worktree's config", "echo >config.worktree"},
		{"a rebase", "mkdir rebase-merge"}, {"patches", "mkdir rebase-apply"}, {"a cherry-pick", "mkdir sequencer"},
		{"remotes", "mkdir remotes"}, {"lazygit", "echo x >lazygit.yml"}, {"glab", "mkdir glab-cli"}, {"Sapling", "mkdir sl"}, {"branches", "mkdir -p branches && echo x >branches/origin"},
	} {
		dir := t.TempDir()
		if out, err := exec.Command(git, "init", "-q", dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		dir = filepath.Join(dir, ".git")
		if st, err := os.Stat(filepath.Join(dir, "hooks")); err != nil || !st.IsDir() {
			t.Skip("git's templates are not installed")
		}
		sh := exec.Command("sh", "-c", c.script)
		sh.Dir = dir
		if out, err := sh.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", c.name, err, out)
		}
		s := &Snapshot{host: &h, audit: &Audit{}, left: 1 << 20}
		if got := s.strange(dir, filepath.Dir(dir)); (len(got) == 0) != (c.name == "") {
			t.Errorf("%s: told %v", c.name, got)
		}
	}
	s := &Snapshot{host: &h, audit: &Audit{}, left: 1 << 20}
	if len(s.strange(t.TempDir()+"/none", "/")) == 0 {
		t.Error("no repository is plain")
	}
}

// TestIndexBound: all indexes share one limit, and what is beyond it does not count as
// harmless: the index is reported, and no repository is plain. The control: neither happens
// below the limit.
func TestIndexBound(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	dir := filepath.Join(tree, ".git")
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\tbare = false\n", "index": "no index"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	index := filepath.Join(dir, "index")
	for left, want := range map[int]bool{8: false, 5: false, 100: true} {
		s := &Snapshot{host: &h, audit: &Audit{}, left: left}
		if told := s.newGitlinks(index, tree); (len(told) == 0) != want {
			t.Errorf("with %d bytes left it reported %v", left, told)
		}
		s.left = left
		if got := s.strange(dir, tree); (len(got) == 0) != want {
			t.Errorf("with %d bytes left it is told %v", left, got)
		}
	}
	for left, want := range map[int]int{5: 0, 0: 0, -1: 0, 100: 8} {
		if got, _ := readIndex(index, &left); len(got) != want {
			t.Errorf("%d bytes were read, want %d", len(got), want)
		}
	}
}

// TestIndexBoundTrees: one writable tree does not use up the limit of another. A big index is
// read like a small one.
func TestIndexBoundTrees(t *testing.T) {
	for _, more := range []int{0, 2 << 20} {
		testIndexBoundTrees(t, more)
	}
}

func testIndexBoundTrees(t *testing.T, more int) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	first, second := t.TempDir(), t.TempDir()
	link := second + "/a/b/c/link"
	for name, text := range map[string]string{
		first + "/made/.git/index": "", second + "/.git/index": string(index("a/b/c/link/")) + strings.Repeat("\x00", more), link + "/.git/config": "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(first+"/made/.git/index", maxIndexes+1); err != nil {
		t.Fatal(err)
	}
	flag := policy.Rule{Origin: policy.Origin{Source: "--rw"}}
	tree := func(dir string) resolve.Path {
		return resolve.Path{Path: dir, Mode: fs.ModeDir, Access: policy.Read | policy.Write, Rule: flag}
	}
	r := &resolve.Resolved{Paths: []resolve.Path{tree(first), tree(second)}}
	set := Find(r, &h, Request{Users: true, Table: func() mounts.Table { return mounts.Table{} }})
	if !slices.ContainsFunc(set.Mounts, func(m mounts.Mount) bool { return m.Path == link+"/.git/config" }) {
		t.Errorf("with %d bytes more protected are %v", more, set.Mounts)
	}
}

// TestOwnGitlink: an index with SHA-1 names can also be parsed as one with SHA-256 names, and
// then has a gitlink without a name. That is no reason to report the repository, and its
// submodules are looked for once.
func TestOwnGitlink(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	tree := t.TempDir()
	text, left := append(index("vendor/lib1/"), make([]byte, 100)...), maxIndexes
	if links, _, _ := parseIndex(text, 32, false, &left); !slices.Contains(links, "") {
		t.Fatalf("with the other length there are %q", links)
	}
	for name, text := range map[string]string{".git/index": string(text), ".git/modules/x": "", ".gitmodules": "", "vendor/lib1/.git/commondir": ""} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := &Snapshot{host: &h, audit: &Audit{}, left: maxIndexes}
	want := []Change{{Path: tree + "/vendor/lib1/.git/commondir", New: true}}
	if told := s.newGitlinks(tree+"/.git/index", tree); !slices.Equal(told, want) {
		t.Errorf("reported %v, want %v", told, want)
	}
	c := &protector{host: &h, seen: make(map[string]bool), bytes: maxIndexes}
	left = nestedModules
	c.gitlinks(tree, c.links(tree+"/.git"), &left)
	if left != nestedModules-2 {
		t.Errorf("%d of %d gitlinks are left", left, nestedModules)
	}
}

// TestNear: a repository or a policy made in a directory near the top is reported, even if the
// other existed before. A plain repository is not.
func TestNear(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	create := map[string]func(p string) error{
		"":           func(string) error { return nil },
		".git":       func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Mkdir(p+"/modules", 0o700)) },
		".zsbx.toml": func(p string) error { return os.WriteFile(p, nil, 0o600) },
	}
	dir := t.TempDir()
	var want []Change
	for _, at := range []string{dir, dir + "/below"} {
		for before := range create {
			sub := at + "/with" + before
			if err := errors.Join(os.MkdirAll(sub, 0o700), create[before](sub+"/"+before)); err != nil {
				t.Fatal(err)
			}
			for name := range create {
				if name == ".git" && name != before {
					want = append(want, Change{Path: sub + "/.git/modules", New: true})
				} else if name != "" && name != before {
					want = append(want, Change{Path: sub + "/" + name, New: true})
				}
			}
		}
	}
	want = append(want, Change{Path: dir + "/below/.zsbx.toml", New: true})
	slices.SortFunc(want, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	r := &resolve.Resolved{OS: "linux", Paths: []resolve.Path{{Path: dir, Access: policy.Read | policy.Write, Mode: fs.ModeDir}}}
	set := Find(r, &h, Request{Users: true, Table: func() mounts.Table { return mounts.Table{} }})
	set.Trees = []string{dir}
	s := set.Snapshot(&h, nil)
	if got := s.Changes(); len(got) > 0 {
		t.Errorf("nothing was made: %v", got)
	}
	for _, c := range want {
		p := strings.TrimSuffix(c.Path, "/modules")
		if err := create[filepath.Base(p)](p); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "-q", dir+"/below").CombinedOutput(); err != nil {
		t.Logf("git: %v: %s", err, out)
	}
	if got := s.Changes(); !slices.Equal(got, want) {
		t.Errorf("reported: %v\nmade: %v", got, want)
	}
}
