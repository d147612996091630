package enforce

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

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/policy"
)

// fakeHost is a machine with the given files; a name that ends in "@" is a
// symbolic link.
func fakeHost(files ...string) *policy.Host {
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
	return &policy.Host{
		OS:      "linux",
		ReadDir: func(p string) ([]fs.DirEntry, error) { return tree.ReadDir(at(p)) },
		Lstat: func(p string) (policy.Stat, error) {
			info, err := tree.Lstat(at(p))
			if err != nil {
				return policy.Stat{}, &fs.PathError{Op: "lstat", Path: p, Err: syscall.ENOENT}
			}
			id := fnv.New64()
			io.WriteString(id, p)
			return policy.Stat{Mode: info.Mode(), ID: policy.FileID{Dev: 1, Ino: id.Sum64()}}, nil
		},
	}
}

// readable is a policy of one directory.
func readable(p string) []tree { return []tree{{path: p, access: policy.Read, mode: fs.ModeDir}} }

func lit(p string) policy.DenyPath  { return policy.DenyPath{Pattern: p} }
func glob(p string) policy.DenyPath { return policy.DenyPath{Pattern: p, Glob: true} }

func TestDenials(t *testing.T) {
	const (
		ro = policy.Read
		rw = policy.Read | policy.Write
	)
	host := fakeHost("/d/.env", "/d/a/x", "/d/a/y", "/d/a/.env", "/d/b/z", "/d/link@", "/d/secrets/k", "/e/f")
	tests := []struct {
		name  string
		trees []tree
		deny  []policy.DenyPath
		want  []string // path:access, "list" for directories that may only be listed
		gaps  int
	}{
		{"nothing denied", []tree{{path: "/d", access: ro, mode: fs.ModeDir}}, nil, []string{"/d ro"}, 0},
		{"elsewhere", []tree{{path: "/d", access: rw, mode: fs.ModeDir}}, []policy.DenyPath{lit("/e/f"), lit("/dd"), glob("/e/**/x")},
			[]string{"/d rw_noexec"}, 0},
		{"the rule itself", []tree{{path: "/d", access: rw, mode: fs.ModeDir}, {path: "/e", access: ro, mode: fs.ModeDir}},
			[]policy.DenyPath{lit("/d")}, []string{"/e ro"}, 0},
		{"above the rule", []tree{{path: "/d/a", access: rw, mode: fs.ModeDir}}, []policy.DenyPath{lit("/d")}, nil, 0},
		{"the rule itself, by a glob", []tree{{path: "/d/a/x", access: ro}}, []policy.DenyPath{glob("/**/x")}, nil, 0},
		{"a file", []tree{{path: "/d", access: ro, mode: fs.ModeDir}}, []policy.DenyPath{lit("/d/.env")},
			[]string{"/d list", "/d/a ro", "/d/b ro", "/d/secrets ro"}, 0},
		{"a directory", []tree{{path: "/d", access: ro, mode: fs.ModeDir}}, []policy.DenyPath{lit("/d/secrets")},
			[]string{"/d/.env ro", "/d/a ro", "/d/b ro"}, 0},
		{"deeper", []tree{{path: "/d", access: ro, mode: fs.ModeDir}}, []policy.DenyPath{lit("/d/a/x")},
			[]string{"/d list", "/d/.env ro", "/d/a list", "/d/a/.env ro", "/d/a/y ro", "/d/b ro", "/d/secrets ro"}, 0},
		{"glob", []tree{{path: "/d", access: ro, mode: fs.ModeDir}}, []policy.DenyPath{glob("/d/**/.env")},
			[]string{"/d list", "/d/a list", "/d/a/x ro", "/d/a/y ro", "/d/b ro", "/d/secrets ro"}, 0},
		{"not there", []tree{{path: "/d", access: ro, mode: fs.ModeDir}}, []policy.DenyPath{lit("/d/none"), lit("/d/a/x/y"), glob("/d/*.pem")},
			[]string{"/d ro"}, 0},
		{"writable", []tree{{path: "/d", access: rw, mode: fs.ModeDir}}, []policy.DenyPath{lit("/d/.env"), glob("/d/**/x")},
			[]string{"/d rw_noexec"}, 2},
		{"a rule below the denied one", []tree{{path: "/d", access: ro, mode: fs.ModeDir}, {path: "/d/secrets/k", access: ro}},
			[]policy.DenyPath{lit("/d/secrets")}, []string{"/d/.env ro", "/d/a ro", "/d/b ro"}, 0},
		{"a bad pattern", []tree{{path: "/d", access: ro, mode: fs.ModeDir}}, []policy.DenyPath{glob("/d/[")}, []string{"/d ro"}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := subtract(denyRequest{trees: tt.trees, deny: tt.deny, host: host, noMasks: "tried"})
			var got []string
			for _, r := range c.trees {
				what := r.access.String()
				if r.listOnly {
					what = "list"
				}
				got = append(got, r.path+" "+what)
			}
			if !slices.Equal(got, tt.want) || len(c.unheld) != tt.gaps {
				t.Errorf("got %q, unheld %v\nwant %q, %d unheld", got, c.unheld, tt.want, tt.gaps)
			}
		})
	}
}

func TestDenialsWithoutHost(t *testing.T) {
	c := subtract(denyRequest{trees: readable("/d"), deny: []policy.DenyPath{lit("/d/x")}})
	if len(c.trees) != 1 || len(c.unheld) != 1 {
		t.Errorf("%v, unheld %v", c.trees, c.unheld)
	}
}

func TestDenialsTooMany(t *testing.T) {
	var files []string
	for i := range maxSiblings + 5 {
		files = append(files, "/d/"+strconv.Itoa(i))
	}
	c := subtract(denyRequest{trees: readable("/d"), deny: []policy.DenyPath{lit(files[0])}, host: fakeHost(files...)})
	if len(c.trees) != 1 || len(c.unheld) != 1 {
		t.Errorf("%d trees, unheld %v", len(c.trees), c.unheld)
	}
}

// TestDenialsExact: of a read-only tree, exactly what is not denied can be
// read afterwards, whatever the tree and the denials are.
func TestDenialsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		file := rapid.Custom(func(t *rapid.T) string {
			return "/t/" + strings.Join(rapid.SliceOfN(name, 1, 4).Draw(t, "names"), "/") + "/f"
		})
		files := append(rapid.SliceOfN(file, 1, 12).Draw(t, "files"), "/t/f")
		pattern := rapid.Custom(func(t *rapid.T) policy.DenyPath {
			p := rapid.SampledFrom(files).Draw(t, "of")
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				return lit(p)
			case 1:
				return lit(path.Dir(p))
			case 2:
				return glob("/t/**/" + path.Base(path.Dir(p)))
			}
			return glob(path.Dir(p) + "/*")
		})
		deny := rapid.SliceOfN(pattern, 1, 3).Draw(t, "deny")
		q := denyRequest{trees: readable("/t"), deny: deny, host: fakeHost(files...)}
		c, d := subtract(q), newDenials(q)
		trees := c.trees
		if len(c.unheld) > 0 {
			t.Fatalf("unheld: %v", c.unheld)
		}
		for _, f := range files {
			denied := slices.ContainsFunc(d.deny, func(d barred) bool { return d.covers(f) })
			allowed := slices.ContainsFunc(trees, func(t tree) bool { return !t.listOnly && within(f, t.path) })
			if denied == allowed {
				t.Fatalf("%s: denied %v, allowed %v; %v", f, denied, allowed, trees)
			}
			listed := slices.ContainsFunc(trees, func(t tree) bool { return within(path.Dir(f), t.path) })
			if slices.ContainsFunc(d.deny, func(d barred) bool { return d.covers(path.Dir(f)) }) && listed {
				t.Fatalf("%s is denied and can be listed; %v", path.Dir(f), trees)
			}
		}
	})
}

// TestDenialsOtherNames: a rule for a file would hold for all its names.
func TestDenialsOtherNames(t *testing.T) {
	host := fakeHost("/d/.env", "/d/alias", "/d/other")
	lstat := host.Lstat
	host.Lstat = func(p string) (policy.Stat, error) {
		if p == "/d/alias" {
			p = "/d/.env"
		}
		return lstat(p)
	}
	c := subtract(denyRequest{trees: readable("/d"), deny: []policy.DenyPath{lit("/d/.env")}, host: host})
	if len(c.unheld) > 0 {
		t.Fatalf("unheld: %v", c.unheld)
	}
	for _, r := range c.trees {
		if r.path == "/d/alias" {
			t.Error("the denied file is allowed by its other name")
		}
	}
}
