package enforce

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// mountinfo has the mounts of a machine.
const mountinfo = "/proc/self/mountinfo"

// treeHost is a machine with the files and texts in the map. Names that end in a slash are
// directories. Texts that begin with "->" are links.
func treeHost(files map[string]string) *host.Host {
	tree := map[string]string{"/": "", mountinfo: "1 0 8:1 / / rw - ext4 /dev/a rw\n"}
	for name, text := range files {
		clean := path.Clean(name)
		tree[clean] = text
		if strings.HasSuffix(name, "/") {
			tree[clean+"/"] = ""
			delete(tree, clean)
		}
		for d := path.Dir(clean); d != "/"; d = path.Dir(d) {
			tree[d+"/"] = ""
		}
	}
	ids := map[string]uint64{}
	for i, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range tree {
			if !yield(n) {
				return
			}
		}
	}) {
		ids[strings.TrimSuffix(name, "/")] = uint64(i + 1)
	}
	lstat := func(p string) (host.Stat, error) {
		text, file := tree[p]
		_, dir := tree[strings.TrimSuffix(p, "/")+"/"]
		st := host.Stat{ID: host.FileID{Dev: 1, Ino: ids[strings.TrimSuffix(p, "/")]}}
		switch {
		case dir || p == "/":
			st.Mode = fs.ModeDir | 0o755
		case file && strings.HasPrefix(text, "->"):
			st.Mode = fs.ModeSymlink
		case !file:
			return st, &fs.PathError{Op: "lstat", Path: p, Err: fs.ErrNotExist}
		}
		return st, nil
	}
	return &host.Host{
		OS: "linux", Dir: "/", Lstat: lstat,
		Readlink: func(p string) (string, error) { return strings.TrimPrefix(tree[p], "->"), nil },
		ReadFile: func(p string) ([]byte, error) {
			if _, err := lstat(p); err != nil {
				return nil, err
			}
			return []byte(tree[p]), nil
		},
		ReadDir: func(p string, n int) ([]fs.DirEntry, error) {
			if st, err := lstat(p); err != nil || !st.Mode.IsDir() {
				return nil, fs.ErrNotExist
			}
			var out []fs.DirEntry
			for name := range tree {
				clean := strings.TrimSuffix(name, "/")
				if clean != "" && path.Dir(clean) == p {
					out = append(out, treeEntry{path.Base(clean), strings.HasSuffix(name, "/"), strings.HasPrefix(tree[name], "->")})
				}
			}
			slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return out, nil
		},
	}
}

type treeEntry struct {
	name      string
	dir, link bool
}

func (e treeEntry) Name() string               { return e.name }
func (e treeEntry) IsDir() bool                { return e.dir }
func (e treeEntry) Info() (fs.FileInfo, error) { return nil, fs.ErrInvalid }
func (e treeEntry) Type() fs.FileMode {
	switch {
	case e.dir:
		return fs.ModeDir
	case e.link:
		return fs.ModeSymlink
	}
	return 0
}

// canMount returns a machine where an ordinary user may make namespaces.
func canMount() Caps {
	return Caps{OS: "linux", Arch: "amd64", Landlock: 7, Seccomp: true, MountNS: true}
}

// asked returns a policy with these rules.
func asked(h *host.Host, home string, writable []string, deny ...string) *resolve.Resolved {
	r := &resolve.Resolved{OS: "linux", Dir: "/w", Home: home, Net: resolve.ResolvedNet{Mode: resolve.NetOpen}}
	for _, w := range writable {
		st, _ := h.Lstat(w)
		r.Paths = append(r.Paths, resolve.Path{Path: w, Mode: st.Mode.Type(), ID: st.ID, Access: policy.Read | policy.Write,
			Rule: policy.Rule{Path: w, Origin: policy.Origin{Source: "--rw"}}})
	}
	for _, d := range deny {
		r.Deny = append(r.Deny, resolve.DenyPath{Pattern: d, Glob: strings.Contains(d, "*")})
	}
	return r
}

// mountList returns the plan's mounts in short form.
func mountList(p *Plan) string {
	if p.Mounts == nil {
		return "none"
	}
	var out []string
	for _, m := range p.Mounts.Mounts {
		out = append(out, string(m.Kind)+" "+m.Path)
	}
	return strings.Join(out, "\n")
}

func TestMountReasons(t *testing.T) {
	mask, protect := mounts.Mount{Kind: mounts.Mask}, mounts.Mount{Kind: mounts.Protect}
	pts := &resolve.Resolved{Paths: []resolve.Path{{Mode: fs.ModeDir, Rule: policy.Rule{Path: mounts.PtsDir, Origin: policy.Origin{Source: "baseline"}}}}}
	none := &resolve.Resolved{}
	for i, c := range []struct {
		q       mounts.Request
		outside bool
		want    int
	}{
		{mounts.Request{Policy: pts}, true, 3},
		{mounts.Request{Policy: pts, Mounts: []mounts.Mount{mask, protect}}, true, 5},
		{mounts.Request{Policy: pts, LeaveMetadata: true}, true, 2},
		{mounts.Request{Policy: pts, LeaveMetadata: true, ShareIPC: true}, true, 1},
		{mounts.Request{Policy: none, LeaveMetadata: true, ShareIPC: true}, true, 0},
		{mounts.Request{Policy: pts, ShareIPC: true, ShareTerminals: true}, false, 0},
		{mounts.Request{Policy: pts, LeaveMetadata: true, ShareIPC: true, ShareTerminals: true}, true, 0},
		{mounts.Request{Policy: pts, LeaveMetadata: true, ShareIPC: true, ShareTerminals: true, Mounts: []mounts.Mount{mask}}, true, 1},
		{mounts.Request{Policy: pts, LeaveMetadata: true, ShareIPC: true, ShareTerminals: true, Mounts: []mounts.Mount{protect}}, true, 1},
	} {
		if got := c.q.Reasons(c.outside); len(got) != c.want {
			t.Errorf("%d: got %q", i, got)
		}
	}
}

func TestPlanMounts(t *testing.T) {
	h := treeHost(map[string]string{
		"/w/.env": "", "/w/a/.env": "", "/w/a/keys/id": "", "/w/a/link.env": "->../b/real", "/w/b/real": "", "/w/.hidden/": "",
		"/home/u/.bashrc": "", "/home/u/.config/git/config": "", "/home/u/.ssh/config": "->/home/u/dot/ssh", "/home/u/dot/ssh": "",
		"/g/.git/HEAD": "", "/g/.git/objects/": "", "/g/.git/config": "", "/g/.git/hooks/x": "",
		"/g/.git/modules/a/b/HEAD": "", "/g/.git/modules/a/b/objects/": "", "/g/.git/modules/a/b/config": "",
		"/g/one/two/three/.git/config": "", "/g/one/two/.git/config": "", "/g/node_modules/x/.git/config": "",
		"/bare/HEAD": "", "/bare/objects/": "", "/bare/config": "",
		"/links/HEAD": "", "/links/objects": "->/bare/objects", "/links/refs": "->/bare/refs", "/links/config": "",
		"/other/": "",
	})
	accepted := Options{Accepted: []string{GapMetadata, GapIPC, GapTerminals}}
	for _, c := range []struct {
		name     string
		writable []string
		deny     []string
		home     string
		opts     Options
		want     string
	}{
		{name: "nothing to cover", writable: []string{"/other"}, want: ""},
		{name: "all accepted", writable: []string{"/other"}, opts: accepted, want: "none"},
		{name: "all accepted but what is protected", writable: []string{"/bare"}, opts: accepted, want: "protect /bare/config"},
		{name: "a file", writable: []string{"/w"}, deny: []string{"/w/.env"}, want: "mask /w/.env"},
		{name: "a directory hides what is in it", writable: []string{"/w"}, deny: []string{"/w/a", "/w/a/.env", "/w/**/id"}, want: "mask /w/a"},
		{name: "globs", writable: []string{"/w"}, deny: []string{"/w/**/.env"}, want: "mask /w/.env\nmask /w/a/.env"},
		{name: "a glob that names a link", writable: []string{"/w"}, deny: []string{"/w/**/*.env"}, want: "mask /w/.env\nmask /w/a/.env\nmask /w/b/real"},
		{name: "what does not exist", writable: []string{"/w"}, deny: []string{"/w/new"}, want: ""},
		{name: "what is outside", writable: []string{"/w"}, deny: []string{"/g/.git"}, want: ""},
		{name: "shell and links", writable: []string{"/home/u"}, home: "/home/u",
			want: "protect /home/u/.bashrc\npin /home/u/.config\npin /home/u/.config/git\nprotect /home/u/.config/git/config\npin /home/u/.ssh\npin /home/u/.ssh/config\npin /home/u/dot\nprotect /home/u/dot/ssh"},
		{name: "repositories", writable: []string{"/g"},
			want: "pin /g/.git\nprotect /g/.git/config\nprotect /g/.git/hooks\npin /g/.git/modules\npin /g/.git/modules/a\npin /g/.git/modules/a/b\nprotect /g/.git/modules/a/b/config\npin /g/one/two/.git\nprotect /g/one/two/.git/config"},
		{name: "a bare repository", writable: []string{"/bare"}, want: "protect /bare/config"},
		{name: "a bare repository of links", writable: []string{"/links"}, want: "protect /links/config"},
		{name: "opted out", writable: []string{"/g"}, opts: Options{Accepted: []string{GapProtect}}, want: ""},
		{name: "the caller's own", writable: []string{"/home/u"}, opts: Options{Accepted: []string{GapProtect}, Protect: []string{"/home/u/.config/git", "/elsewhere"}},
			want: "pin /home/u/.config\nprotect /home/u/.config/git"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewPlan(asked(h, c.home, c.writable, c.deny...), canMount(), h, c.opts)
			if got := mountList(p); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if p.Mounts != nil && !slices.Equal(p.Mounts.Writable, c.writable) {
				t.Errorf("writable: %q", p.Mounts.Writable)
			}
		})
	}
}

func inPlace(c *Caps) { *c = c.InPlace(false) }

// TestMountGaps: each promise is either kept by the mounts or a gap.
func TestMountGaps(t *testing.T) {
	h := treeHost(map[string]string{"/w/.env": "", "/w/.git/config": ""})
	for _, c := range []struct {
		name string
		caps func(*Caps)
		opts Options
		deny string
		rw   string
		want string
	}{
		{name: "held", caps: func(*Caps) {}, deny: "/w/.env", want: ""},
		{name: "to come", caps: func(*Caps) {}, deny: "/w/**/.env", want: "deny-missing(hardening)"},
		{name: "no namespace", caps: func(c *Caps) { c.MountNS = false }, deny: "/w/.env", want: "deny(core) protect(hardening) metadata(hardening)"},
		{name: "opted out", caps: func(*Caps) {}, opts: Options{Accepted: []string{GapProtect}}, want: ""},
		{name: "all accepted", caps: func(*Caps) {}, opts: Options{Accepted: []string{GapProtect, GapMetadata, GapIPC, GapTerminals}}, want: "metadata(hardening)"},
		{name: "/ is writable", caps: func(c *Caps) { c.MountNS = false }, opts: Options{Accepted: []string{GapProtect}}, rw: "/", want: ""},
		{name: "in place", caps: inPlace, want: "protect(hardening) metadata(hardening) orphans(hardening)"},
		{name: "in place as root", caps: func(c *Caps) { c.Privileged = true; inPlace(c) }, want: "orphans(hardening)"},
		{name: "in place, kept", caps: func(c *Caps) { *c = c.InPlace(true) }, want: "protect(hardening) metadata(hardening)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			caps := canMount()
			c.caps(&caps)
			var deny []string
			if c.deny != "" {
				deny = []string{c.deny}
			}
			var got []string
			for _, g := range NewPlan(asked(h, "", []string{cmp.Or(c.rw, "/w")}, deny...), caps, h, c.opts).Gaps {
				switch g.Name {
				case GapDeny, GapDenyMissing, GapProtect, GapMetadata, GapOrphans:
					got = append(got, g.Name+"("+string(g.Kind)+")")
				}
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestMountsUnread: if it is not known what is mounted where, denied, protected and zsbx's own
// files may have other names. Then the command does not start, or that is accepted by name, and
// what has a known name is covered nevertheless.
func TestMountsUnread(t *testing.T) {
	h := treeHost(map[string]string{"/w/.env": "", "/w/.git/config": "", "/w/own": "", "/ro/secret": ""})
	read := h.ReadFile
	var failure error
	h.ReadFile = func(p string) ([]byte, error) {
		if p == mountinfo && failure != nil {
			return nil, failure
		}
		return read(p)
	}
	r := asked(h, "", []string{"/w"}, "/w/.env", "/ro/secret")
	r.Paths = append(r.Paths, resolve.Path{Path: "/ro", Access: policy.Read, Mode: fs.ModeDir})
	plan := func() (p *Plan, gaps string) {
		p = NewPlan(r, canMount(), h, Options{Protect: []string{"/w/own"}})
		var all []string
		for _, g := range p.Gaps {
			if strings.Contains(g.Why, "other mounts") {
				all = append(all, g.Name+": "+g.Promise)
			}
		}
		return p, strings.Join(all, "\n")
	}
	control, gaps := plan()
	if gaps != "" || control.Err(nil, false) != nil {
		t.Fatalf("control: %q, %v", gaps, control.Err(nil, false))
	}
	const want = "deny: no access to /w/.env\ndeny: no access to /ro/secret\n" +
		"own-files: no change of file systems of the kernel that are in writable trees, which zsbx relies on\n" +
		"own-files: no change of /w/own, which zsbx relies on\n" +
		"protect: no change of /w/.git/config and more by other names"
	for _, failure = range []error{syscall.EACCES, syscall.EIO, syscall.ENOENT} {
		p, gaps := plan()
		if gaps != want || p.Err(nil, false) == nil {
			t.Errorf("%v: gaps\n%s\nwant\n%s", failure, gaps, want)
		}
		if got := mountList(p); got != mountList(control) || !strings.Contains(got, "mask /w/.env") {
			t.Errorf("%v: %s", failure, got)
		}
	}
}
