package protect

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// look is one look-up: what is asked, and of which path.
type lookUp struct{ doing, path string }

// faulty returns a host that calls asked before each look-up, and returns its error.
func faulty(machine host.Host, asked func(lookUp) error) *host.Host {
	h := machine
	h.Lstat = func(p string) (host.Stat, error) {
		if err := asked(lookUp{"lstat", p}); err != nil {
			return host.Stat{}, err
		}
		return machine.Lstat(p)
	}
	h.Readlink = func(p string) (string, error) {
		if err := asked(lookUp{"readlink", p}); err != nil {
			return "", err
		}
		return machine.Readlink(p)
	}
	h.ReadFile = func(p string) ([]byte, error) {
		if err := asked(lookUp{"readfile", p}); err != nil {
			return nil, err
		}
		return machine.ReadFile(p)
	}
	h.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
		if err := asked(lookUp{"readdir", p}); err != nil {
			return nil, err
		}
		return machine.ReadDir(p, n)
	}
	return &h
}

// inject is an error of one look-up.
type inject struct {
	at    lookUp
	errno syscall.Errno

	mu    sync.Mutex // two goroutines search a big tree
	asked []lookUp   // those that were made
}

func (i *inject) err(l lookUp) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, l)
	if l == i.at {
		return i.errno
	}
	return nil
}

var errnos = []syscall.Errno{syscall.EACCES, syscall.EIO, syscall.ELOOP}

// fullTree makes a tree in which everything that is looked for exists: each name of the table, a
// repository with a submodule, a linked worktree, includes and hooks that are links.
func fullTree(t *testing.T) string {
	t.Helper()
	tree, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range projectNames() {
		write(t, tree+"/"+strings.ReplaceAll(name, "*", "-x"), "")
	}
	gitDir := func(dir, config string) {
		for _, name := range []string{"objects/x", "refs/x", "HEAD", "hooks/post-merge"} {
			write(t, dir+"/"+name, "")
		}
		write(t, dir+"/config", config)
	}
	gitDir(tree+"/.git", "[include]\npath = ../included\n[core]\nhooksPath = tools/hooks\nfsmonitor = tools/monitor --fast\n")
	write(t, tree+"/tools/hooks/pre-push", "")
	write(t, tree+"/tools/monitor", "")
	write(t, tree+"/.git/index", string(index("lib/")))
	write(t, tree+"/included", "[include]\npath = behind/more\n")
	write(t, tree+"/real/more", "")
	write(t, tree+"/scripts/hook", "")
	gitDir(tree+"/.git/modules/lib", "")
	gitDir(tree+"/.git/modules/in/group", "")
	write(t, tree+"/lib/.git", "gitdir: ../.git/modules/lib\n")
	write(t, tree+"/.git/worktrees/w/commondir", "../..\n")
	write(t, tree+"/.git/worktrees/w/config.worktree", "")
	write(t, tree+"/.git/worktrees/w/gitdir", tree+"/away/.git\n")
	write(t, tree+"/away/.git", "gitdir: "+tree+"/.git/worktrees/w\n")
	gitDir(tree+"/near/below/.git", "")
	write(t, tree+"/near/.zsbx.toml", "")
	if err := errors.Join(os.Symlink("real", tree+"/behind"), os.Symlink("../../scripts/hook", tree+"/.git/hooks/pre-commit"),
		os.Symlink("real", tree+"/kilo-real"), os.Symlink("../scripts/hook", tree+"/.opencode-link")); err != nil {
		t.Fatal(err)
	}
	return tree
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		if st, e := os.Stat(name); e == nil && st.IsDir() { // a name that is a directory of another one
			return
		}
		t.Fatal(err)
	}
}

// find plans for one tree.
func find(h *host.Host, tree string) Set {
	rw := resolve.Path{Path: tree, Mode: fs.ModeDir, Access: policy.Read | policy.Write, Rule: policy.Rule{Origin: policy.Origin{Source: "--rw"}}}
	r := &resolve.Resolved{OS: "linux", Dir: tree, Paths: []resolve.Path{rw}}
	set := Find(r, h, Request{Users: true, Repository: tree, Table: func() mounts.Table { return mounts.Table{} }})
	set.Trees, set.Mounted = []string{tree}, true
	return set
}

// covered reports whether a path is read-only.
func covered(set *Set, p string) bool {
	return slices.ContainsFunc(set.Mounts, func(m mounts.Mount) bool { return m.Kind == mounts.Protect && host.Within(p, m.Path) })
}

// TestUnknownPlan: if one look-up of a plan fails so that it is unknown what is there, then
// everything that was read-only without the fault is read-only, or a fact says that it may not
// be.
func TestUnknownPlan(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	tree := fullTree(t)
	var all inject
	base := find(faulty(h, all.err), tree)
	if len(base.Facts) > 0 {
		t.Fatalf("without a fault: %v", base.Facts)
	}
	for _, name := range projectNames() {
		p := tree + "/" + strings.ReplaceAll(name, "*", "-x")
		watched := slices.ContainsFunc(base.Paths, func(w Compared) bool { return w.Path == p })
		if !covered(&base, p) && !watched {
			t.Errorf("without a fault %s is not protected", p)
		}
	}
	slices.SortFunc(all.asked, func(a, b lookUp) int { return strings.Compare(a.doing+a.path, b.doing+b.path) })
	all.asked = slices.Compact(all.asked)
	tried := 0
	for _, at := range all.asked {
		if !host.Within(at.path, tree) {
			continue
		}
		for _, errno := range errnos {
			tried++
			in := inject{at: at, errno: errno}
			set := find(faulty(h, in.err), tree)
			if len(set.Facts) > 0 {
				continue
			}
			for _, m := range base.Mounts {
				if m.Kind == mounts.Protect && !covered(&set, m.Path) {
					t.Errorf("%s of %s: %v: nothing is said, and %s can be written", at.doing, at.path, errno, m.Path)
				}
			}
			for _, w := range base.Paths {
				known := func(o Compared) bool { return o.Path == w.Path }
				if !slices.ContainsFunc(set.Paths, known) && !covered(&set, w.Path) {
					t.Errorf("%s of %s: %v: nothing is said, and %s is not watched", at.doing, at.path, errno, w.Path)
				}
			}
		}
	}
	if want := 3 * len(projectNames()); tried < want {
		t.Errorf("%d faults were tried, want at least %d", tried, want)
	}
}

// TestUnknownMade: the same if the names do not exist, but the directories that may have them.
// What is made where a look-up failed is read-only, or a fact said so, or it is reported.
func TestUnknownMade(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range projectNames() {
		for _, errno := range errnos {
			for _, doing := range []string{"lstat", "readdir"} {
				tree := t.TempDir()
				p := tree + "/" + strings.ReplaceAll(name, "*", "-x")
				at := lookUp{doing, p}
				if err := os.MkdirAll(path.Dir(p), 0o755); err != nil {
					t.Fatal(err)
				}
				if doing == "readdir" {
					at.path = path.Dir(p)
				}
				in := inject{at: at, errno: errno}
				bad := faulty(h, in.err)
				set := find(bad, tree)
				s := set.Snapshot(bad, nil)
				write(t, p, "")
				s.host = &h
				told := slices.ContainsFunc(s.Changes(), func(c Change) bool { return c.Path == p })
				if !told && !covered(&set, p) && len(set.Facts) == 0 {
					t.Errorf("%s of %s: %v: nothing is said of %s", doing, at.path, errno, p)
				}
			}
		}
	}
}

// TestUnknownEnd: if at the end a look-up fails that the comparison makes, something is reported.
func TestUnknownEnd(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	tree := fullTree(t)
	set := find(&h, tree)
	set.Later = []resolve.DenyPath{{Pattern: tree + "/**/*.pem", Glob: true}, {Pattern: tree + "/near/denied"}}
	var all inject
	end := func(in *inject) []Change {
		s := set.Snapshot(&h, nil)
		s.host = faulty(h, in.err)
		lstat = func(p string, st *unix.Stat_t) error {
			if err := in.err(lookUp{"lstat", p}); err != nil {
				return err
			}
			return unix.Lstat(p, st)
		}
		defer func() { lstat = unix.Lstat }()
		return s.Changes()
	}
	if told := end(&all); len(told) > 0 {
		t.Fatalf("without a fault: %v", told)
	}
	slices.SortFunc(all.asked, func(a, b lookUp) int { return strings.Compare(a.doing+a.path, b.doing+b.path) })
	asked := slices.Compact(all.asked)
	if len(asked) < len(projectNames()) {
		t.Errorf("only %d look-ups", len(asked))
	}
	for _, at := range asked {
		if at.doing == "lstat" && slices.Contains(asked, lookUp{"readdir", at.path}) && slices.Contains([]string{tree, tree + "/near"}, at.path) {
			continue // it is listed as well
		}
		for _, errno := range errnos {
			if told := end(&inject{at: at, errno: errno}); len(told) == 0 {
				t.Errorf("%s of %s: %v: nothing is reported", at.doing, at.path, errno)
			}
		}
	}
}

// TestAnothers: another user's directory that the command can't get into is not reported as
// changed. If it may search it, it is.
func TestAnothers(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	tree := fullTree(t)
	dir := tree + "/.git/branches"
	err = os.MkdirAll(dir, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	h.UID++ // nothing is the user's
	for _, searched := range []bool{false, true} {
		bad := faulty(h, func(l lookUp) error {
			if l.path == dir && l.doing == "readdir" || l.path == dir+"/." && !searched {
				return &fs.PathError{Op: l.doing, Path: l.path, Err: syscall.EACCES}
			}
			return nil
		})
		set := find(bad, tree)
		if !slices.ContainsFunc(set.Paths, func(w Compared) bool { return w.Path == dir }) {
			t.Fatal("it is not watched")
		}
		told := set.Snapshot(bad, nil).Changes()
		if (len(told) > 0) != searched {
			t.Errorf("it may be searched: %t; reported: %v", searched, told)
		}
	}
}

// TestHintIsForOwner: only who may change the mode of a directory is told to do so.
func TestHintIsForOwner(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	tree := fullTree(t)
	dir := tree + "/closed"
	write(t, dir+"/file", "x")
	for _, own := range []bool{true, false} {
		if !own {
			h.UID++ // nothing is the user's
		}
		bad := faulty(h, func(l lookUp) error {
			if l == (lookUp{"readdir", dir}) {
				return &fs.PathError{Op: l.doing, Path: l.path, Err: syscall.EACCES}
			}
			return nil
		})
		facts := find(bad, tree).Facts
		if len(facts) == 0 {
			t.Fatal("nothing is said")
		}
		for _, f := range facts {
			if (f.Hint != "") != own {
				t.Errorf("own directory: %t; hint: %q", own, f.Hint)
			}
		}
	}
}

// TestUnknownStrange: a new repository is not plain if one look-up into it fails.
func TestUnknownStrange(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir() + "/.git"
	for name, text := range map[string]string{"HEAD": "", "config": "[core]\n\tbare = false\n", "hooks/x.sample": "", "branches/x/y": "", "index": string(index())} {
		write(t, dir+"/"+name, text)
	}
	if err := os.RemoveAll(dir + "/branches/x"); err != nil {
		t.Fatal(err)
	}
	strange := func(in *inject) []Change {
		s := &Snapshot{host: faulty(h, in.err), audit: &Audit{}, left: maxIndexes}
		return s.strange(dir, filepath.Dir(dir))
	}
	var all inject
	if told := strange(&all); len(told) > 0 {
		t.Fatalf("without a fault: %v", told)
	}
	for _, at := range all.asked {
		for _, errno := range errnos {
			if told := strange(&inject{at: at, errno: errno}); len(told) == 0 {
				t.Errorf("%s of %s: %v: it is plain", at.doing, at.path, errno)
			}
		}
	}
}
