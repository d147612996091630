package resolve

import (
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// TestResolveDeny checks how denials are anchored, and which are refused.
func TestResolveDeny(t *testing.T) {
	h := hosttest.Table(map[string]string{
		"/w/link": "-> /data", "/data": "dir", "/w/.env": "-> /secrets/env", "/secrets/env": "file", "/home/u/.ssh": "dir", "/w/locked": "locked", "/w/[x]": "dir", "/w/d": "-> [x]",
	})
	h.Env = append(h.Env, "NAME=a*b", "DIR=/data")
	for _, tt := range []struct{ pattern, want string }{
		{".git/hooks", "/w/.git/hooks"},
		{"locked/x", "/w/locked/x"},
		{"locked/*", "glob /w/locked/*"},
		{".env", "/secrets/env"},
		{"/data", "/data"},
		{"link/x", "/data/x"},
		{"~/.ssh", "/home/u/.ssh"},
		{"cwd/x", "/w/x"},
		{"../x", "/x"},
		{"x/../y/", "/w/y"},
		{`\[x\]`, "/w/[x]"},
		{"$DIR/x", "/data/x"},
		{"**/.env", "glob /w/**/.env"},
		{"*.pem", "glob /w/*.pem"},
		{"./*.pem", "glob /w/*.pem"},
		{"../*.pem", "glob /*.pem"},
		{"~/**/id_*", "glob /home/u/**/id_*"},
		{"/abs/**/x", "glob /abs/**/x"},
		{"link/**/x", "glob /data/**/x"},
		{"d/*", `glob /w/\[x\]/*`},
		{"**", "glob /w/**"},
		{"**/$NAME", `glob /w/**/a\*b`},
		{"${NAME}?", `glob /w/a\*b?`},
		{"$DIR/*", "glob /data/*"},
		{"a//*/./b/", "glob /w/a/*/b"},
		{"${NOPE:-~/.ssh}/id_*", "glob /home/u/.ssh/id_*"},
	} {
		p := &policy.Policy{FS: policy.FS{Deny: []policy.Named{{Value: tt.pattern}}}}
		r, err := Policy(p, h)
		if err != nil {
			t.Errorf("%q: %v", tt.pattern, err)
			continue
		}
		got := r.Deny[0].Pattern
		if r.Deny[0].Glob {
			got = "glob " + got
		}
		if got != tt.want {
			t.Errorf("%q is %q, want %q", tt.pattern, got, tt.want)
		}
	}
	odd := hosttest.Table(map[string]string{"/home/[u]*": "dir", "/w?": "dir"})
	odd.Home, odd.Dir = "/home/[u]*", "/w?"
	r := mustResolve(t, &policy.Policy{FS: policy.FS{Deny: []policy.Named{{Value: "~/x"}, {Value: "y"}, {Value: "~/*"}, {Value: "*"}}}}, odd)
	for i, want := range []string{"/home/[u]*/x", "/w?/y", `/home/\[u\]\*/*`, `/w\?/*`} {
		if r.Deny[i].Pattern != want {
			t.Errorf("in odd directories %q is %q, want %q", r.Deny[i].Deny.Value, r.Deny[i].Pattern, want)
		}
	}
	for _, bad := range []string{"", "/", "/..", "..", "../..", "/*", "/**", "../**", "*/../x", "[", "a**", "{a,b}", "!x", "$NOPE/x", "a\x00", `a\`} {
		p := &policy.Policy{FS: policy.FS{Deny: []policy.Named{{Value: bad}}}}
		if r, err := Policy(p, h); err == nil {
			t.Errorf("%q is %+v", bad, r.Deny)
		}
	}
}

// TestResolveCaseUnread checks that if case does not matter, and it is not known how a name in a
// directory is spelled, the whole directory is denied. A rule for the name stays as it is written.
func TestResolveCaseUnread(t *testing.T) {
	for _, unread := range []error{nil, syscall.EACCES, syscall.EPERM, syscall.EIO} {
		h := hosttest.Table(map[string]string{"/Users/me/shut/key": "file"})
		h.OS, h.Home = "macos", "/Users/me"
		exact := h.Lstat
		h.Lstat = func(p string) (host.Stat, error) { return exact(strings.Replace(p, "KEY", "key", 1)) }
		h.ReadDir = func(dir string, n int) ([]fs.DirEntry, error) {
			names := map[string]string{"/": "Users", "/Users": "me", "/Users/me": "shut", "/Users/me/shut": "key"}
			if dir == "/Users/me/shut" && unread != nil {
				return nil, unread
			}
			return []fs.DirEntry{entryName(names[dir])}, nil
		}
		p := rules(policy.Read, "~/shut/KEY")
		p.FS.Deny = []policy.Named{{Value: "~/shut/KEY"}, {Value: "~/shut/KEY/*"}}
		want, rule := "/Users/me/shut", "/Users/me/shut/KEY"
		if unread == nil {
			want, rule = "/Users/me/shut/key", "/Users/me/shut/key"
		}
		r := mustResolve(t, p, h)
		if !strings.HasPrefix(r.Deny[0].Pattern, want) || r.Allowed("/Users/me/shut/key", policy.Read).Allowed {
			t.Errorf("%v: denied %+v", unread, r.Deny)
		}
		h.Lstat = func(p string) (host.Stat, error) {
			if p == "/Users/me/shut/KEY" && unread != nil {
				return host.Stat{}, syscall.EACCES
			}
			return exact(p)
		}
		closed := mustResolve(t, &policy.Policy{FS: policy.FS{Deny: p.FS.Deny}}, h)
		if unread != nil && closed.Deny[0].Pattern != want {
			t.Errorf("not searched: %+v", closed.Deny)
		}
		if unread != nil && (r.Deny[0].Pattern != want || r.Deny[1].Pattern != want || r.Deny[1].Glob) {
			t.Errorf("%v: denied %+v", unread, r.Deny)
		}
		if r.Paths[0].Path != rule {
			t.Errorf("%v: the rule is for %s", unread, r.Paths[0].Path)
		}
	}
}

// TestResolveCase checks that if case does not matter, as on macOS, a path gets the spelling of the
// file system, whatever case it was written in.
func TestResolveCase(t *testing.T) {
	h := hosttest.Table(map[string]string{"/Users/me/.ssh/id": "file", "/Users/me/.ssh/me": "file", "/Users/me/Src": "-> .ssh", "/Users/me/up": "-> .ssh/../.ssh/id", "/w/link": "-> /Users/me/.SSH", "/Users/me/u\u0308": "dir"})
	exact := h.Lstat
	names := map[string][]string{"/": {"Users", "w"}, "/Users": {"me"}, "/Users/me": {".ssh", "Src", "up", "u\u0308"}, "/Users/me/.ssh": {"id", "me"}}
	reads := 0
	h.ReadDir = func(dir string, n int) ([]fs.DirEntry, error) {
		reads++
		var list []fs.DirEntry
		for _, n := range names[dir] {
			list = append(list, entryName(n))
		}
		return list, nil
	}
	h.Lstat = func(p string) (host.Stat, error) { // a volume that ignores case
		for dir := range names {
			for _, n := range names[dir] {
				full := strings.TrimSuffix(dir, "/") + "/" + n
				if strings.EqualFold(p, strings.ReplaceAll(full, "u\u0308", "ü")) {
					return exact(full)
				}
			}
		}
		return exact(p)
	}
	h.OS, h.Home = "macos", "/Users/me"
	for in, want := range map[string]string{
		"/users/ME/.SSH": "/Users/me/.ssh", "~/.ssh/ID": "/Users/me/.ssh/id", "~/src/id": "/Users/me/.ssh/id",
		"~/Ü": "/Users/me/u\u0308", "/users/me/.Ssh": "/Users/me/.ssh", "/users/ME/up": "/Users/me/.ssh/id",
	} {
		p := rules(policy.Read, in)
		p.FS.Deny = []policy.Named{{Value: in}, {Value: in + "/*"}}
		r := mustResolve(t, p, h)
		if r.Paths[0].Path != want || r.Deny[0].Pattern != want || r.Deny[1].Pattern != want+"/*" {
			t.Errorf("%s is %s, denied as %s and %s, want %s", in, r.Paths[0].Path, r.Deny[0].Pattern, r.Deny[1].Pattern, want)
		}
		if v := r.Allowed(strings.ToUpper(want), policy.Read); v.Path != want && !strings.Contains(want, "\u0308") {
			t.Errorf("asked for %s, got %+v", strings.ToUpper(want), v)
		}
	}
	if r := mustResolve(t, &policy.Policy{FS: policy.FS{Deny: []policy.Named{{Value: "~/Src/key"}}}}, h); r.Deny[0].Pattern != "/Users/me/.ssh/key" {
		t.Errorf("%+v", r.Deny)
	}
	mixed := policy.Merge(rules(policy.Read, "/users/me"), rules(policy.Read, "/users/me"))
	mixed.FS.Rules[0].Origin.Source = "baseline"
	if r := mustResolve(t, mixed, h); r.Paths[0].Path != "/users/me" || r.Paths[1].Path != "/Users/me" {
		t.Errorf("after a built-in rule in the wrong case: %+v", r.Paths)
	}
	reads = 0
	builtIn := rules(policy.Read, "/Users/me/.ssh", "/Users/me/.ssh/id")
	for i := range builtIn.FS.Rules {
		builtIn.FS.Rules[i].Origin.Source = "baseline"
	}
	mustResolve(t, builtIn, h)
	if reads != 2 { // for the spelling of the home directory
		t.Errorf("%d directories were read for paths that are spelled right", reads)
	}
	h.OS = "linux"
	for _, in := range []string{"/users/ME/.SSH", "~/src"} {
		p := rules(policy.Read, in)
		p.FS.Deny = []policy.Named{{Value: in + "/ID"}}
		if r := mustResolve(t, p, h); r.Paths[0].Path != "/Users/me/.ssh" || r.Deny[0].Pattern != "/Users/me/.ssh/id" {
			t.Errorf("on such a volume of Linux %s is %s, denied as %s", in, r.Paths[0].Path, r.Deny[0].Pattern)
		}
	}
	h.OS = "linux"
	link := rules(policy.Read, "/w/link")
	link.FS.Deny = []policy.Named{{Value: "/w/link/ID"}}
	if r := mustResolve(t, link, h); r.Paths[0].Path != "/Users/me/.ssh" || r.Deny[0].Pattern != "/Users/me/.ssh/id" {
		t.Errorf("by a link it is %s, denied as %s", r.Paths[0].Path, r.Deny[0].Pattern)
	}
	// Case matters in one directory of a volume that otherwise ignores it.
	h.Lstat = func(p string) (host.Stat, error) {
		if strings.EqualFold(p, "/users") || strings.HasPrefix(strings.ToLower(p), "/users/") {
			p = "/Users" + p[len("/users"):]
		}
		return exact(p)
	}
	two := rules(policy.Read, "/users/me/.ssh")
	two.FS.Deny = []policy.Named{{Value: "/users/me/.ssh/id"}, {Value: "/users/me/.ssh/me"}}
	if r := mustResolve(t, two, h); r.Deny[0].Pattern != "/Users/me/.ssh/id" || r.Deny[1].Pattern != "/Users/me/.ssh/me" {
		t.Errorf("in a directory where case counts: %+v", r.Deny)
	}
	reads, h.Lstat = 0, exact
	mustResolve(t, rules(policy.Read, "/Users/me/.ssh"), h)
	if reads != 0 {
		t.Errorf("%d directories were read for paths that are spelled right", reads)
	}
}

// entryName is a directory entry of which only the name is known.
type entryName string

func (e entryName) Name() string { return string(e) }

func (e entryName) IsDir() bool { return false }

func (e entryName) Type() fs.FileMode { return 0 }

func (e entryName) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }
