package resolve

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// fakeRepo makes what every git directory has.
func fakeRepo(h *host.Host, t *testing.T, dir string) {
	t.Helper()
	hosttest.Mkdirs(h, t, dir+"/objects/info", dir+"/refs")
	hosttest.Write(h, t, dir+"/HEAD", "ref: refs/heads/main\n")
}

// fakeWorktree makes a linked worktree of the repository main.
func fakeWorktree(h *host.Host, t *testing.T, main, tree, id string) {
	t.Helper()
	git := filepath.Join(h.Home, main, ".git/worktrees", id)
	hosttest.Write(h, t, tree+"/.git", "gitdir: "+git+"\n")
	hosttest.Write(h, t, main+"/.git/worktrees/"+id+"/gitdir", filepath.Join(h.Home, tree, ".git")+"\n")
	hosttest.Write(h, t, main+"/.git/worktrees/"+id+"/commondir", "../..\n")
	hosttest.Write(h, t, main+"/.git/worktrees/"+id+"/HEAD", "ref: refs/heads/x\n")
}

// fakeSubmodule makes a submodule of the repository super.
func fakeSubmodule(h *host.Host, t *testing.T, super, name string) {
	t.Helper()
	fakeRepo(h, t, super+"/.git/modules/"+name)
	hosttest.Write(h, t, super+"/.git/modules/"+name+"/config", "[core]\n\tbare = false\n\tworktree = ../../../"+name+"\n")
	hosttest.Write(h, t, super+"/"+name+"/.git", "gitdir: ../.git/modules/"+name+"\n")
}

// linkAt makes a link to another name below the home directory.
func linkAt(h *host.Host, t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(filepath.Join(h.Home, to), filepath.Join(h.Home, at)); err != nil {
		t.Fatal(err)
	}
}

// rulesFor runs gitRules in a directory below the home directory, with some directories allowed. It
// returns the rules as "access:path ...", relative to the home directory.
func rulesFor(h *host.Host, t *testing.T, dir, writable string) (string, []Skip) {
	t.Helper()
	here := *h
	here.Dir = filepath.Join(h.Home, dir)
	rules, skipped, _ := gitRules(&here, func(p string) policy.Access {
		if writable != "" && host.Within(p, filepath.Join(h.Home, writable)) {
			return policy.Read | policy.Write | policy.Exec
		}
		return 0
	})
	var out []string
	for _, r := range rules {
		out = append(out, r.Access.String()+":"+strings.TrimPrefix(r.Path, h.Home+"/"))
	}
	return strings.Join(out, " "), skipped
}

func TestGitRules(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Mkdirs(&h, t, "none/x", "main/sub")
	fakeRepo(&h, t, "main/.git")
	fakeWorktree(&h, t, "main", "wt", "wt")
	hosttest.Mkdirs(&h, t, "wt/deep")
	fakeSubmodule(&h, t, "main", "lib")
	for _, tt := range []struct{ dir, writable, want string }{
		{"none/x", "", ""},
		{"main", "", "ro:main/.git"},
		{"main", "main", ""},
		{"main/sub", "main/sub", "ro:main/.git"},
		{"wt", "wt", "rw:main/.git"},
		{"wt/deep", "wt/deep", "ro:main/.git ro:wt/.git"},
		{"wt", "", "ro:main/.git ro:wt/.git"},
		{"main/lib", "main/lib", "rw:main/.git/modules/lib"},
		{"main/lib", "main", ""},
	} {
		got, skipped := rulesFor(&h, t, tt.dir, tt.writable)
		if got != tt.want || len(skipped) != 0 {
			t.Errorf("in %s with %q writable: %q, want %q (skipped %v)", tt.dir, tt.writable, got, tt.want, skipped)
		}
	}
}

// TestGitHostile has .git files that name what does not belong to them: each is skipped with a
// reason and opens nothing.
func TestGitHostile(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Mkdirs(&h, t, ".ssh", "fake/objects", "fake/refs")
	fakeRepo(&h, t, "main/.git")
	fakeWorktree(&h, t, "main", "wt", "wt")
	fakeSubmodule(&h, t, "main", "lib")
	fakeRepo(&h, t, "other/.git")
	fakeSubmodule(&h, t, "other", "lib")
	pointers := map[string]string{
		"root":       "gitdir: /",
		"ssh":        "gitdir: " + h.Home + "/.ssh",
		"home":       "gitdir: " + h.Home,
		"foreign":    "gitdir: " + h.Home + "/main/.git/worktrees/wt", // belongs to wt, not to this tree
		"plain":      "gitdir: " + h.Home + "/main/.git",
		"module":     "gitdir: " + h.Home + "/main/.git/modules/lib", // no repository around this tree
		"nohead":     "gitdir: " + h.Home + "/fake",
		"missing":    "gitdir: /does/not/exist",
		"empty":      "",
		"nothing":    "gitdir: ",
		"noprefix":   h.Home + "/main/.git",
		"lines":      "gitdir: /a\n/b",
		"nul":        "gitdir: /a\x00b",
		"long":       "gitdir: /" + strings.Repeat("x", 5000),
		"file":       "gitdir: " + h.Home + "/main/.git/HEAD",
		"main/wrong": "gitdir: " + h.Home + "/other/.git/modules/lib", // of another superproject
		"main/swap":  "gitdir: ../.git/modules/lib",                   // of this superproject, for another tree
		"main/up":    "gitdir: ../.git/modules/../../..",
	}
	for dir, content := range pointers {
		hosttest.Write(&h, t, dir+"/.git", content+"\n")
	}
	// A worktree's directory below another name, whose common directory is not the one that it is in.
	fakeWorktree(&h, t, "main", "common", "common")
	hosttest.Write(&h, t, "main/.git/worktrees/common/commondir", h.Home+"/.ssh\n")
	// A forged worktree inside a project, whose common directory would be
	// the secret itself through a link.
	hosttest.Mkdirs(&h, t, "forged/w")
	if err := os.Symlink(h.Home, filepath.Join(h.Home, "forged/w/worktrees")); err != nil {
		t.Fatal(err)
	}
	hosttest.Write(&h, t, "forged/.git", "gitdir: w/worktrees/.ssh\n")
	// .git itself is a link to a directory, which git would follow.
	fakeRepo(&h, t, "client/.repo/projects/a.git")
	hosttest.Write(&h, t, "owned/config", "[core]\n\tworktree = "+h.Home+"/linked-owned-not\n")
	fakeRepo(&h, t, "owned")
	fakeRepo(&h, t, "bare.git")
	for dir, to := range map[string]string{
		"linked": ".ssh", "linked-home": ".", "linked-other": "other/.git", "linked-tree": "linked-tree", "linked-owned": "owned", "linked-bare": "bare.git",
		"linked-module": "main/.git/modules/lib", "linked-worktree": "main/.git/worktrees/wt", "linked-nothing": "nothing", "linked-loop": "linked-loop/.git",
		"client/b":    "client/.repo/projects/a.git", // that of client/a
		"elsewhere/a": "client/.repo/projects/a.git", // of another client
	} {
		hosttest.Mkdirs(&h, t, dir)
		at := dir + "/.git"
		if strings.HasSuffix(dir, ".git") {
			at = dir
		}
		_ = os.RemoveAll(filepath.Join(h.Home, at))
		linkAt(&h, t, to, at)
		pointers[strings.TrimSuffix(dir, "/.git")] = ""
	}
	for _, dir := range []string{"common", "forged"} {
		pointers[dir] = ""
	}
	for dir := range pointers {
		got, skipped := rulesFor(&h, t, dir, dir)
		if got != "" || len(skipped) != 1 || skipped[0].Reason == "" {
			t.Errorf("%s: opened %q, skipped %v", dir, got, skipped)
		}
	}
}

// TestGitLinks: what .git leads to as a link, or as a file, is used if it lies in the tree, if its
// own configuration names the tree, or if it lies where AOSP's repo puts that of this tree.
func TestGitLinks(t *testing.T) {
	h := hosttest.Disk(t)
	for _, dir := range []string{"inside/gitdir", "git/owned", "git/file", "client/.repo/projects/a/b.git", "client/.repo/projects/apart.git", "linked.git"} {
		fakeRepo(&h, t, dir)
	}
	hosttest.Write(&h, t, "git/owned/config", "[core]\n\tworktree = /wrong\n\tworktree = ../../owned\n")
	hosttest.Write(&h, t, "git/file/config", "[core]\n\tworktree = "+h.Home+"/file\n")
	hosttest.Write(&h, t, "file/.git", "gitdir: ../git/file\n")
	hosttest.Mkdirs(&h, t, "client/.repo/project-objects/x.git/objects", "inside/sub", "owned/sub")
	if err := os.RemoveAll(filepath.Join(h.Home, "client/.repo/projects/apart.git/objects")); err != nil {
		t.Fatal(err)
	}
	linkAt(&h, t, "client/.repo/project-objects/x.git/objects", "client/.repo/projects/apart.git/objects")
	for dir, to := range map[string]string{
		"inside": "inside/gitdir", "owned": "git/owned", "client/a/b": "client/.repo/projects/a/b.git", "client/apart": "client/.repo/projects/apart.git",
	} {
		hosttest.Mkdirs(&h, t, dir)
		linkAt(&h, t, to, dir+"/.git")
	}
	for _, tt := range []struct{ dir, writable, want string }{
		{"inside", "inside", ""},
		{"inside/sub", "inside/sub", "ro:inside/gitdir"},
		{"owned", "owned", "rw:git/owned"},
		{"owned/sub", "owned/sub", "ro:git/owned"},
		{"owned", "", "ro:git/owned"},
		{"file", "file", "rw:git/file"},
		{"client/a/b", "client/a/b", "rw:client/.repo/projects/a/b.git"},
		{"client/apart", "client/apart", "rw:client/.repo/projects/apart.git rw:client/.repo/project-objects/x.git/objects"},
		{"client/apart", "client", ""},
	} {
		got, skipped := rulesFor(&h, t, tt.dir, tt.writable)
		if got != tt.want || len(skipped) != 0 {
			t.Errorf("in %s with %q writable: %q, want %q (skipped %v)", tt.dir, tt.writable, got, tt.want, skipped)
		}
	}
}

// TestGitRepoObjects: the objects of one of repo's projects may not be elsewhere.
func TestGitRepoObjects(t *testing.T) {
	for _, to := range []string{"client/.repo/project-objects", "client/.repo/manifests.git/objects", "other/.git/objects", ".ssh"} {
		h := hosttest.Disk(t)
		fakeRepo(&h, t, "client/.repo/projects/a.git")
		hosttest.Mkdirs(&h, t, to, "client/a")
		if err := os.RemoveAll(filepath.Join(h.Home, "client/.repo/projects/a.git/objects")); err != nil {
			t.Fatal(err)
		}
		linkAt(&h, t, to, "client/.repo/projects/a.git/objects")
		linkAt(&h, t, "client/.repo/projects/a.git", "client/a/.git")
		if got, skipped := rulesFor(&h, t, "client/a", "client/a"); got != "" || len(skipped) != 1 {
			t.Errorf("%s: opened %q, skipped %v", to, got, skipped)
		}
	}
}

// TestApart: what is closed is told with what it belongs to.
func TestApart(t *testing.T) {
	h := hosttest.Disk(t)
	fakeRepo(&h, t, "other/.git")
	fakeRepo(&h, t, "git/free")
	fakeRepo(&h, t, "git/owned")
	fakeRepo(&h, t, "git/bare")
	hosttest.Write(&h, t, "git/owned/config", "[core]\n\tworktree = "+h.Home+"/other\n")
	hosttest.Write(&h, t, "git/bare/config", "[core]\n\tbare = true\n")
	hosttest.Mkdirs(&h, t, "workdir/.git")
	hosttest.Write(&h, t, "other/.git/config", "")
	linkAt(&h, t, "other/.git/objects", "workdir/.git/objects")
	linkAt(&h, t, "other/.git/config", "workdir/.git/config")
	hosttest.Write(&h, t, "sep/.git", "gitdir: ../git/free\n")
	hosttest.Mkdirs(&h, t, "a", "b", "c", "d", "e", "f/.git", "g/.git", "Documents/x", "objects/pack", "objects/info")
	linkAt(&h, t, "Documents", "f/.git/objects")
	linkAt(&h, t, "objects", "g/.git/objects")
	for dir, to := range map[string]string{"a": "git/free", "b": "other/.git", "c": "git/owned", "d": "git/bare", "e": "Documents"} {
		linkAt(&h, t, to, dir+"/.git")
	}
	for dir, want := range map[string][2]string{
		"sep": {"git/free", ""}, "a": {"git/free", ""}, "b": {"other/.git", "other"}, "c": {"git/owned", "other"}, "d": {"git/bare", "git/bare"},
		"workdir": {"other/.git", "other"}, "other": {}, "e": {}, "f": {}, "g": {"objects", ""},
	} {
		here := h
		here.Dir = filepath.Join(h.Home, dir)
		resolve := func(more ...policy.Rule) UnprovedGit {
			p := &policy.Policy{Presets: []policy.Named{{Value: "git"}}}
			p.FS.Rules = append(more, policy.Rule{Path: here.Dir, Access: policy.Read | policy.Write | policy.Exec, Origin: policy.Origin{Source: "--rw"}})
			r, err := Policy(p, here)
			if err != nil {
				t.Fatal(err)
			}
			return r.UnprovedGit()
		}
		got := resolve()
		name := func(p string) string { return strings.TrimPrefix(p, h.Home+"/") }
		if name(got.Dir) != want[0] || name(got.Owner) != want[1] || (got.Text != "") != (got.Dir != "") {
			t.Errorf("%s: %+v, want %q", dir, got, want)
		}
		if got.Dir == "" {
			continue
		}
		if opened := resolve(policy.Rule{Path: got.Dir, Access: policy.Read | policy.Write, Origin: policy.Origin{Source: "--rw"}}); opened.Dir != "" {
			t.Errorf("%s: with a rule %+v", dir, opened)
		}
	}
}

// TestGitFIFO puts a FIFO wherever git has a file that is read here.
func TestGitFIFO(t *testing.T) {
	h := hosttest.Disk(t)
	fakeRepo(&h, t, "main/.git")
	fakeWorktree(&h, t, "main", "wt", "wt")
	fakeSubmodule(&h, t, "main", "lib")
	for file, dir := range map[string]string{
		"main/.git/objects/info/alternates": "main",
		"main/.git/modules/lib/config":      "main/lib",
		"main/.git/worktrees/wt/commondir":  "wt",
		"wt/.git":                           "wt",
	} {
		p := filepath.Join(h.Home, file)
		os.Remove(p)
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
		rulesFor(&h, t, dir, dir) // must return
	}
}

// TestGitAlternates: the file that names other repositories opens nothing.
func TestGitAlternates(t *testing.T) {
	h := hosttest.Disk(t)
	fakeRepo(&h, t, "main/.git")
	fakeRepo(&h, t, "other/.git")
	hosttest.Write(&h, t, "main/.git/objects/info/alternates", h.Home+"/other/.git/objects\n")
	if got, skipped := rulesFor(&h, t, "main", "main"); got != "" || len(skipped) != 0 {
		t.Errorf("opened %q, skipped %v", got, skipped)
	}
}
