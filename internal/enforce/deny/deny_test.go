package deny

import (
	"hash/fnv"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// fakeHost is a machine with the given files. A name that ends in "@" is a symbolic link.
func fakeHost(files ...string) *host.Host {
	tree := fstest.MapFS{}
	for _, f := range files {
		mode := fs.FileMode(0o644)
		if name, ok := strings.CutSuffix(f, "@"); ok {
			f, mode = name, fs.ModeSymlink|0o777
		}
		tree[strings.TrimPrefix(f, "/")] = &fstest.MapFile{Mode: mode}
	}
	at := func(p string) string {
		if p == "/" {
			return "."
		}
		return p[1:]
	}
	return &host.Host{
		OS:      "linux",
		ReadDir: func(p string, n int) ([]fs.DirEntry, error) { return tree.ReadDir(at(p)) },
		Lstat: func(p string) (host.Stat, error) {
			info, err := tree.Lstat(at(p))
			if err != nil {
				return host.Stat{}, &fs.PathError{Op: "lstat", Path: p, Err: syscall.ENOENT}
			}
			id := fnv.New64()
			io.WriteString(id, p)
			links := uint64(1)
			if entries, err := tree.ReadDir(at(p)); err == nil && info.IsDir() {
				links = 2
				for _, e := range entries {
					if e.IsDir() {
						links++
					}
				}
			}
			return host.Stat{Mode: info.Mode(), ID: host.FileID{Dev: 1, Ino: id.Sum64()}, Nlink: links}, nil
		},
	}
}

// readable is a policy that allows reading one directory.
func readable(p string) []Tree { return []Tree{{Path: p, Access: policy.Read, Mode: fs.ModeDir}} }

func lit(p string) resolve.DenyPath  { return resolve.DenyPath{Pattern: p} }
func wild(p string) resolve.DenyPath { return resolve.DenyPath{Pattern: p, Glob: true} }

func TestDenials(t *testing.T) {
	const (
		ro = policy.Read
		rw = policy.Read | policy.Write
	)
	host := fakeHost("/d/.env", "/d/a/x", "/d/a/y", "/d/a/.env", "/d/b/z", "/d/link@", "/d/secrets/k", "/e/f")
	tests := []struct {
		name  string
		trees []Tree
		deny  []resolve.DenyPath
		want  []string // path:access, "list" for directories that may only be listed
		gaps  int
	}{
		{"nothing denied", []Tree{{Path: "/d", Access: ro, Mode: fs.ModeDir}}, nil, []string{"/d ro"}, 0},
		{"elsewhere", []Tree{{Path: "/d", Access: rw, Mode: fs.ModeDir}}, []resolve.DenyPath{lit("/e/f"), lit("/dd"), wild("/e/**/x")},
			[]string{"/d rw_noexec"}, 0},
		{"the rule itself", []Tree{{Path: "/d", Access: rw, Mode: fs.ModeDir}, {Path: "/e", Access: ro, Mode: fs.ModeDir}},
			[]resolve.DenyPath{lit("/d")}, []string{"/e ro"}, 0},
		{"above the rule", []Tree{{Path: "/d/a", Access: rw, Mode: fs.ModeDir}}, []resolve.DenyPath{lit("/d")}, nil, 0},
		{"the rule itself, by a glob", []Tree{{Path: "/d/a/x", Access: ro}}, []resolve.DenyPath{wild("/**/x")}, nil, 0},
		{"a file", []Tree{{Path: "/d", Access: ro, Mode: fs.ModeDir}}, []resolve.DenyPath{lit("/d/.env")},
			[]string{"/d list", "/d/a ro", "/d/b ro", "/d/secrets ro"}, 0},
		{"a directory", []Tree{{Path: "/d", Access: ro, Mode: fs.ModeDir}}, []resolve.DenyPath{lit("/d/secrets")},
			[]string{"/d/.env ro", "/d/a ro", "/d/b ro"}, 0},
		{"deeper", []Tree{{Path: "/d", Access: ro, Mode: fs.ModeDir}}, []resolve.DenyPath{lit("/d/a/x")},
			[]string{"/d list", "/d/.env ro", "/d/a list", "/d/a/.env ro", "/d/a/y ro", "/d/b ro", "/d/secrets ro"}, 0},
		{"glob", []Tree{{Path: "/d", Access: ro, Mode: fs.ModeDir}}, []resolve.DenyPath{wild("/d/**/.env")},
			[]string{"/d list", "/d/a list", "/d/a/x ro", "/d/a/y ro", "/d/b ro", "/d/secrets ro"}, 0},
		{"not there", []Tree{{Path: "/d", Access: ro, Mode: fs.ModeDir}}, []resolve.DenyPath{lit("/d/none"), lit("/d/a/x/y"), wild("/d/*.pem")},
			[]string{"/d ro"}, 0},
		{"writable", []Tree{{Path: "/d", Access: rw, Mode: fs.ModeDir}}, []resolve.DenyPath{lit("/d/.env"), wild("/d/**/x")},
			[]string{"/d rw_noexec"}, 2},
		{"a rule below the denied one", []Tree{{Path: "/d", Access: ro, Mode: fs.ModeDir}, {Path: "/d/secrets/k", Access: ro}},
			[]resolve.DenyPath{lit("/d/secrets")}, []string{"/d/.env ro", "/d/a ro", "/d/b ro"}, 0},
		{"a bad pattern", []Tree{{Path: "/d", Access: ro, Mode: fs.ModeDir}}, []resolve.DenyPath{wild("/d/[")}, []string{"/d ro"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Subtract(Request{Trees: tt.trees, Deny: tt.deny, Host: host, NoMasks: "tried"})
			var got []string
			for _, r := range c.Trees {
				what := r.Access.String()
				if r.ListOnly {
					what = "list"
				}
				got = append(got, r.Path+" "+what)
			}
			if !slices.Equal(got, tt.want) || len(c.Unenforced) != tt.gaps {
				t.Errorf("got %q, unenforced %v\nwant %q, %d unenforced", got, c.Unenforced, tt.want, tt.gaps)
			}
		})
	}
}

func TestDenialsWithoutHost(t *testing.T) {
	c := Subtract(Request{Trees: readable("/d"), Deny: []resolve.DenyPath{lit("/d/x")}})
	if len(c.Trees) != 1 || len(c.Unenforced) != 1 {
		t.Errorf("%v, unenforced %v", c.Trees, c.Unenforced)
	}
}

func TestDenialsTooMany(t *testing.T) {
	var files []string
	for i := range maxSiblings + 5 {
		files = append(files, "/d/"+strconv.Itoa(i))
	}
	c := Subtract(Request{Trees: readable("/d"), Deny: []resolve.DenyPath{lit(files[0])}, Host: fakeHost(files...), NoMasks: "tried"})
	if len(c.Trees) != 1 || len(c.Unenforced) != 1 || c.Open != 1 || c.Denied != 1 {
		t.Errorf("%d trees, unenforced %v, %d of %d", len(c.Trees), c.Unenforced, c.Open, c.Denied)
	}
	c = Subtract(Request{Trees: readable("/d"), Deny: []resolve.DenyPath{lit(files[0])}, Host: fakeHost(files...)})
	if len(c.Trees) != 1 || len(c.Unenforced) != 0 || len(c.Masks) != 1 {
		t.Errorf("with mounts: %d trees, unenforced %v, masks %v", len(c.Trees), c.Unenforced, c.Masks)
	}
}

// TestDenialsTooManyMasks: if more files are denied than can be hidden, it is known how many stay
// open, and which directory has them all.
func TestDenialsTooManyMasks(t *testing.T) {
	files := []string{"/d/plain"}
	for i := range maxMasks + 100 {
		files = append(files, "/d/keys/"+strconv.Itoa(i)+".key")
	}
	writable := []Tree{{Path: "/d", Access: policy.Read | policy.Write, Mode: fs.ModeDir}}
	c := Subtract(Request{Trees: writable, Deny: []resolve.DenyPath{wild("/d/**/*.key")}, Host: fakeHost(files...)})
	if len(c.Masks) != maxMasks || c.Open != 100 || c.Denied != maxMasks+100 || len(c.Unenforced) != 1 {
		t.Fatalf("%d masks, %d of %d open, %d unenforced", len(c.Masks), c.Open, c.Denied, len(c.Unenforced))
	}
	if u := c.Unenforced[0]; u.In != "/d/keys" || !strings.Contains(u.Why, "; 100 of 50100 denied files would stay open") {
		t.Errorf("%+v", u)
	}
}

// TestDenialsMany: a glob's matches are found quickly in a directory of any size.
func TestDenialsMany(t *testing.T) {
	var files []string
	for i := range 20_000 {
		files = append(files, "/d/"+strconv.Itoa(i)+".o")
	}
	host := fakeHost(append(files, "/d/c")...)
	for access, unenforced := range map[policy.Access]int{policy.Read: 0, policy.Read | policy.Write: 0} {
		begin := time.Now()
		c := Subtract(Request{Trees: []Tree{{Path: "/d", Access: access, Mode: fs.ModeDir}}, Deny: []resolve.DenyPath{wild("/**/*.o")}, Host: host})
		if took := time.Since(begin); took > testkit.Patience/4 || len(c.Unenforced) != unenforced {
			t.Errorf("%v: %v, %d unenforced", access, took, len(c.Unenforced))
		}
	}
}

// TestDenialsTwice: two denials of one directory, by two names, are both for something that
// exists: nothing new can be made under either name.
func TestDenialsTwice(t *testing.T) {
	host := fakeHost("/d/a/f", "/d/b/f")
	other := map[string]string{"/d/a": "/d/b", "/d/b": "/d/a"}
	c := Subtract(Request{
		Trees: []Tree{{Path: "/d", Access: policy.Read | policy.Write, Mode: fs.ModeDir}}, Host: host,
		Deny: []resolve.DenyPath{lit("/d/a"), lit("/d/b")}, Twice: []string{"/d/a", "/d/b"},
		Same: func(p string) ([]string, error) {
			if o := other[p]; o != "" {
				return []string{o}, nil
			}
			return nil, nil
		},
	})
	if len(c.Later) > 0 || len(c.Unenforced) > 0 {
		t.Errorf("later %v, unenforced %v", c.Later, c.Unenforced)
	}
}

// TestDenialsExact: in any read-only tree, exactly what is not denied can be read afterwards.
func TestDenialsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		file := rapid.Custom(func(t *rapid.T) string {
			return "/t/" + strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/") + "/f"
		})
		files := append(rapid.SliceOfN(file, 1, 12).Draw(t, "files"), "/t/f")
		pattern := rapid.Custom(func(t *rapid.T) resolve.DenyPath {
			p := rapid.SampledFrom(files).Draw(t, "of")
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				return lit(p)
			case 1:
				return lit(path.Dir(p))
			case 2:
				return wild("/t/**/" + path.Base(path.Dir(p)))
			}
			return wild(path.Dir(p) + "/*")
		})
		deny := rapid.SliceOfN(pattern, 1, 3).Draw(t, "deny")
		q := Request{Trees: readable("/t"), Deny: deny, Host: fakeHost(files...)}
		c, d := Subtract(q), newDenials(q)
		trees := c.Trees
		if len(c.Unenforced) > 0 {
			t.Fatalf("unenforced: %v", c.Unenforced)
		}
		for _, f := range files {
			denied := slices.ContainsFunc(d.deny, func(d barred) bool { return d.covers(f) })
			allowed := slices.ContainsFunc(trees, func(t Tree) bool { return !t.ListOnly && host.Within(f, t.Path) })
			if denied == allowed {
				t.Fatalf("%s: denied %v, allowed %v; %v", f, denied, allowed, trees)
			}
			listed := slices.ContainsFunc(trees, func(t Tree) bool { return host.Within(path.Dir(f), t.Path) })
			if slices.ContainsFunc(d.deny, func(d barred) bool { return d.covers(path.Dir(f)) }) && listed {
				t.Fatalf("%s is denied and can be listed; %v", path.Dir(f), trees)
			}
		}
	})
}

// TestDenialsOtherNames: a rule for a file would open all its names.
func TestDenialsOtherNames(t *testing.T) {
	h := fakeHost("/d/.env", "/d/alias", "/d/other")
	lstat := h.Lstat
	h.Lstat = func(p string) (host.Stat, error) {
		if p == "/d/alias" {
			p = "/d/.env"
		}
		return lstat(p)
	}
	c := Subtract(Request{Trees: readable("/d"), Deny: []resolve.DenyPath{lit("/d/.env")}, Host: h})
	if len(c.Unenforced) > 0 {
		t.Fatalf("unenforced: %v", c.Unenforced)
	}
	for _, r := range c.Trees {
		if r.Path == "/d/alias" {
			t.Error("the denied file is allowed by its other name")
		}
	}
}

// TestDenialsClosed: a tree that can't be listed may contain denied files. It is masked whole,
// or the denial is unenforced.
func TestDenialsClosed(t *testing.T) {
	host := fakeHost("/d/.env")
	host.ReadDir = func(p string, n int) ([]fs.DirEntry, error) { return nil, fs.ErrPermission }
	for access, masks := range map[policy.Access]int{policy.Read: 0, policy.Read | policy.Write: 1} {
		c := Subtract(Request{Trees: []Tree{{Path: "/d", Access: access, Mode: fs.ModeDir}}, Deny: []resolve.DenyPath{wild("/d/**/.env")}, Host: host})
		if len(c.Masks) != masks || len(c.Unenforced) != 1-masks {
			t.Errorf("%v: masked %v, unenforced %v", access, c.Masks, c.Unenforced)
		}
	}
}

// TestRemovedMeanwhile: the search goes on if another command removes a directory meanwhile.
func TestRemovedMeanwhile(t *testing.T) {
	h := fakeHost("/w/a/.env", "/w/b/x")
	list, gone := h.ReadDir, 3
	h.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
		if p == "/w/b" && gone > 0 {
			gone--
			return nil, &fs.PathError{Op: "open", Path: p, Err: syscall.ENOENT}
		}
		return list(p, n)
	}
	find := func() ([]hit, error) {
		d := newDenials(Request{Host: h, Deny: []resolve.DenyPath{wild("/w/**/.env")}})
		return d.find(alias{"/w", "/w"}, d.deny)
	}
	if found, err := find(); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	look := h.Lstat
	h.CountsDirs = func(string) bool { return true }
	h.Lstat = func(p string) (host.Stat, error) {
		if host.Within(p, "/w/b") && gone > 0 {
			return host.Stat{}, &fs.PathError{Op: "lstat", Path: p, Err: syscall.ENOENT}
		}
		return look(p)
	}
	gone = 3
	if found, err := find(); err != nil || len(found) != 1 || gone > 0 {
		t.Errorf("with look-ups: %v, %v, %d", found, err, gone)
	}
	gone = 1000
	if _, err := find(); err == nil {
		t.Error("what can't be searched is ignored")
	}
}
