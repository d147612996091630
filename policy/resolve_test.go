package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"
	"testing"
)

// TestResolvePaths has one row for each way to write a path.
func TestResolvePaths(t *testing.T) {
	h := tableHost(map[string]string{
		"/w/src/main.go": "file", "/w/link": "-> /data/real", "/data/real/x": "file",
		"/w/a/up": "-> ../../data", "/w/self": "-> .", "/w/top": "-> /", "/w/cwd/x": "file", "/w/~": "dir", "/w/a$b": "dir",
		"/home/u/.config/git": "dir", "/home/u/.cache": "-> /big/cache", "/big/cache": "dir", "/w/chain1": "-> chain2", "/w/chain2": "-> src/main.go",
		"/w/ü/日本": "dir", "/etc/resolv.conf": "-> ../run/resolve/stub.conf", "/run/resolve/stub.conf": "file",
		"/w/abs": "-> /w/rel", "/w/rel": "-> a/../src", "/dev/null": "device", "/w/pipe": "fifo", "/var": "dir",
	})
	h.Env = append(h.Env, "CACHE=/big/cache", "SUB=src", "EMPTY=", "REL=x", "PWD=/somewhere/else")
	for _, tt := range []struct{ path, want, links string }{
		{"/w/src", "/w/src", ""},
		{"/", "/", ""},
		{"//w///src/./", "/w/src", ""},
		{".", "/w", ""},
		{"./", "/w", ""},
		{"cwd", "/w", ""},
		{"cwd/src", "/w/src", ""},
		{"./cwd/x", "/w/cwd/x", ""},
		{"src", "/w/src", ""},
		{"./src/main.go", "/w/src/main.go", ""},
		{"..", "/", ""},
		{"../../..", "/", ""},
		{"src/..", "/w", ""},
		{"nowhere/../src", "/w/src", ""},
		{"~", "/home/u", ""},
		{"~/", "/home/u", ""},
		{"~/.config/git", "/home/u/.config/git", ""},
		{"~/../u", "/home/u", ""},
		{"./~", "/w/~", ""},
		{"$HOME/.config/git", "/home/u/.config/git", ""},
		{"${HOME}/.config", "/home/u/.config", ""},
		{"$CACHE", "/big/cache", ""},
		{"$PWD", "/w", ""},
		{"$SUB/main.go", "/w/src/main.go", ""},
		{"a$$b", "/w/a$b", ""},
		{"${NOPE:-~/.config}/git", "/home/u/.config/git", ""},
		{"${EMPTY:-/big}/cache", "/big/cache", ""},
		{"${CACHE:-~/x}", "/big/cache", ""},
		{"${REL:-/big}/cache", "/big/cache", ""}, // a default is for directories: a value that is none counts as unset
		{"link", "/data/real", "/w/link"},
		{"link/x", "/data/real/x", "/w/link"},
		{"link/../src", "/w/src", ""}, // lexically
		{"a/up/real", "/data/real", "/w/a/up"},
		{"self/self/src", "/w/src", "/w/self /w/self"},
		{"top", "/", "/w/top"},
		{"top/w/link", "/data/real", "/w/top /w/link"},
		{"chain1", "/w/src/main.go", "/w/chain1 /w/chain2"},
		{"abs", "/w/src", "/w/abs /w/rel"},
		{"~/.cache", "/big/cache", "/home/u/.cache"},
		{"/etc/resolv.conf", "/run/resolve/stub.conf", "/etc/resolv.conf"},
		{"ü/日本", "/w/ü/日本", ""},
		{"/dev/null", "/dev/null", ""},
		{"pipe", "/w/pipe", ""},
	} {
		r, err := rules(Read|Write, tt.path).Resolve(h)
		if err != nil {
			t.Errorf("%q: %v", tt.path, err)
			continue
		}
		p := r.Paths[0]
		if p.Path != tt.want || strings.Join(p.Links, " ") != tt.links {
			t.Errorf("%q is %q by %q, want %q by %q", tt.path, p.Path, p.Links, tt.want, tt.links)
		}
		st, err := h.Lstat(tt.want)
		if err != nil || p.ID != st.ID || p.Mode != st.Mode.Type() || p.Rule.Path != tt.path {
			t.Errorf("%q: %+v, lstat says %+v, %v", tt.path, p, st, err)
		}
		if len(p.Links) == 0 && p.Outside() {
			t.Errorf("%q leads outside without a link: %+v", tt.path, p)
		}
	}
	r := mustResolve(t, rules(Read, "link", "self/src", "src"), h)
	for i, want := range []bool{true, true, false} {
		if got := r.Paths[i].Outside(); got != want {
			t.Errorf("%+v: Outside is %v", r.Paths[i], got)
		}
	}
}

// TestResolveErrors checks the message for each path that is no good, all in
// one error, and that an optional rule is skipped instead, where the machine
// is the reason.
func TestResolveErrors(t *testing.T) {
	h := tableHost(map[string]string{
		"/w/file": "file", "/w/loop": "-> loop", "/w/a": "-> b", "/w/b": "-> a/x", "/w/gone": "-> /nowhere/x",
		"/w/secret": "locked", "/proc/self": "-> 42", "/proc/42/status": "file", "/proc/sys/vm": "dir", "/sys/fs/cgroup/user": "dir",
		"/w/cg": "-> /sys/fs/cgroup", "/w/empty": "-> ",
	})
	h.Env = append(h.Env, "EMPTY=", "BELL=\a")
	long := map[string]string{}
	for i := range 60 {
		long[fmt.Sprintf("/chain/%d", i)] = fmt.Sprintf("-> %d", i+1)
	}
	long["/chain/60"] = "file"
	chain := tableHost(long)
	h.Lstat, h.Readlink = both(h.Lstat, chain.Lstat), func(orig, other func(string) (string, error)) func(string) (string, error) {
		return func(p string) (string, error) {
			if strings.HasPrefix(p, "/chain") {
				return other(p)
			}
			return orig(p)
		}
	}(h.Readlink, chain.Readlink)
	for _, tt := range []struct {
		path, want string
		code       Code
		skip       bool
	}{
		{"nope", "/w/nope does not exist", CodeMissing, true},
		{"nope/deeper", "/w/nope/deeper: /w/nope does not exist", CodeMissing, true},
		{"file/x", "/w/file/x: /w/file is not a directory", CodeMissing, true},
		{"gone", "/w/gone: /nowhere does not exist", CodeMissing, true},
		{"empty", "/w/empty", CodeMissing, true},
		{"loop", "/w/loop: too many symbolic links, or a loop of them", CodePath, true},
		{"a", "/w/a: too many symbolic links", CodePath, true},
		{"/chain/0", "/chain/0: too many symbolic links", CodePath, true},
		{"secret", "/w/secret: permission denied", CodePath, true},
		{"$NOPE/x", "path \"$NOPE/x\": $NOPE is not set, or empty", CodeVariable, true},
		{"$EMPTY/x", "$EMPTY is not set, or empty", CodeVariable, true},
		{"$BELL", "$BELL has a control character", CodeValue, false},
		{"", "an empty path", CodeValue, false},
		{"a\nb", "has a control character", CodeValue, false},
		{"~v/x", "another user's home", CodeValue, false},
		{"/proc/42", "/proc/42 must not be writable", CodeRefused, false},
		{"/proc/sys/vm", "must not be writable", CodeRefused, false},
		{"/proc/self", "/proc/self would be the directory of zsbx itself", CodeRefused, false},
		{"/sys/fs/cgroup", "must not be writable", CodeRefused, false},
		{"cg/user", "/sys/fs/cgroup/user must not be writable", CodeRefused, false},
	} {
		r, err := rules(Read|Write, tt.path).Resolve(h)
		var e *Error
		if r != nil || !errors.As(err, &e) {
			t.Errorf("%q: %+v, %v", tt.path, r, err)
			continue
		}
		if e.Code != tt.code || !strings.Contains(e.Msg, tt.want) || e.Origin != (Origin{"test", 1, 1}) {
			t.Errorf("%q: %s %v, want %s %s", tt.path, e.Code, e, tt.code, tt.want)
		}
		if e.Code == CodeMissing && !strings.Contains(e.Hint, "--ignore-missing") {
			t.Errorf("%q: hint %q", tt.path, e.Hint)
		}
		p := rules(Read|Write, tt.path)
		p.FS.Rules[0].Optional = true
		r, err = p.Resolve(h)
		if skipped := err == nil && len(r.Paths) == 0 && len(r.Skipped) == 1 && r.Skipped[0].Reason != ""; skipped != tt.skip {
			t.Errorf("optional %q: %+v, %v", tt.path, r, err)
		}
	}
	if _, err := rules(Read, "nope", "/", "", "loop").Resolve(h); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all three errors at once: %v", err)
	}
	// A chain of forty links is one that the kernel follows.
	if r, err := rules(Read, "/chain/20").Resolve(h); err != nil || r.Paths[0].Path != "/chain/60" {
		t.Errorf("forty links: %v", err)
	}
	if _, err := rules(Read, "/chain/0", "/chain/20", "/chain/40").Resolve(h); err == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("one chain too long spoils others: %v", err)
	}
}

func both(a, b func(string) (Stat, error)) func(string) (Stat, error) {
	return func(p string) (Stat, error) {
		if strings.HasPrefix(p, "/chain") {
			return b(p)
		}
		return a(p)
	}
}

func TestResolveNoHome(t *testing.T) {
	h := tableHost(nil)
	h.Home, h.Env = "", nil
	if _, err := rules(Read, "~/x").Resolve(h); err == nil || !strings.Contains(err.Error(), "the home directory is not known (HOME is not set)") {
		t.Errorf("got %v", err)
	}
	p := rules(Read, "~/x")
	p.FS.Rules[0].Optional = true
	if r := mustResolve(t, p, h); len(r.Skipped) != 1 {
		t.Errorf("not skipped: %+v", r)
	}
}

func TestResolveHost(t *testing.T) {
	for name, change := range map[string]func(*Host){
		"OS":       func(h *Host) { h.OS = "plan9" },
		"no dir":   func(h *Host) { h.Dir = "" },
		"relative": func(h *Host) { h.Dir = "w" },
		"unclean":  func(h *Host) { h.Dir = "/w/" },
		"home":     func(h *Host) { h.Home = "u" },
		"temp":     func(h *Host) { h.TempDir = "tmp" },
		"blind":    func(h *Host) { h.Lstat = nil },
	} {
		h := tableHost(nil)
		change(&h)
		if r, err := (&Policy{}).Resolve(h); err == nil || r != nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestResolveTooMany(t *testing.T) {
	h := tableHost(nil)
	p := &Policy{}
	for range MaxRules {
		p.FS.Rules = append(p.FS.Rules, Rule{Path: "/w", Access: Read})
	}
	p.FS.Rules = append(p.FS.Rules, Rule{Path: "/w", Access: Read, Optional: true})
	if _, err := p.Resolve(h); err != nil {
		t.Errorf("%d rules and an optional one: %v", MaxRules, err)
	}
	p.FS.Rules[MaxRules].Optional = false
	var e *Error
	if _, err := p.Resolve(h); !errors.As(err, &e) || e.Code != CodeLimit {
		t.Errorf("%d rules: %v", MaxRules+1, err)
	}
}

// TestResolveSystems checks that one system's overrides hold on it alone, and
// that what is said later for all systems overrides them.
func TestResolveSystems(t *testing.T) {
	user := mustTOML(t, `
[fs]
ro = ["/"]
[net]
allow = true
[linux.net]
allow = false
[linux.fs]
rw = ["."]
[linux.fs.system]
executable = ["/bin"]
[linux.env]
set = { A = "linux" }
[macos.limits]
timeout = "1s"
`)
	h := tableHost(map[string]string{"/bin": "dir"})
	r := mustResolve(t, user, h)
	if r.Net.Mode != NetNone || len(r.Paths) != 3 || r.Limits.Timeout != 0 {
		t.Errorf("linux: %+v", r)
	}
	mac := h
	mac.OS = "macos"
	if r := mustResolve(t, user, mac); r.Net.Mode != NetOpen || len(r.Paths) != 1 || r.Limits.Timeout == 0 {
		t.Errorf("macos: %+v", r)
	}
	flags := &Policy{}
	flags.Net.Allow = &Flag{true, Origin{Source: "--net"}}
	flags.FS.System.Executable = []Rule{}
	flags.Env.Set = []Var{{"A", "flag", Origin{Source: "--env"}}}
	r = mustResolve(t, Merge(user, flags), h)
	if r.Net.Mode != NetOpen || r.Net.From.Source != "--net" || len(r.Paths) != 2 || !contains(r.Env, "A=flag") {
		t.Errorf("a flag after a file's [linux]: %+v", r)
	}
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func TestResolveSystemCategories(t *testing.T) {
	h := tableHost(map[string]string{"/usr": "dir", "/bin": "-> usr", "/dev/null": "device", "/etc": "dir"})
	base := mustTOML(t, "[fs.system]\nexecutable = ['/usr']\nread_only = ['/etc']\nread_write = ['/dev/null']\n")
	own := mustTOML(t, "[fs.system]\nexecutable = ['/bin']\nread_only = []\n")
	var got []string
	for _, p := range mustResolve(t, Merge(base, own), h).Paths {
		got = append(got, p.Access.String()+" "+p.Path)
	}
	if want := []string{"rox /usr", "rw_noexec /dev/null"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResolveTempDir(t *testing.T) {
	h := tableHost(map[string]string{"/tmp/zsbx-$1": "dir"})
	h.TempDir = "/tmp/zsbx-$1"
	r := mustResolve(t, &Policy{}, h)
	if len(r.Paths) != 1 || r.Paths[0].Path != h.TempDir || r.Paths[0].Access != Read|Write|Exec || r.Paths[0].Rule.Origin.Source != "private temporary directory" {
		t.Errorf("%+v", r.Paths)
	}
	h.TempDir = "/tmp/not-made-yet"
	if r := mustResolve(t, &Policy{}, h); len(r.Paths) != 0 || len(r.Skipped) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestResolveCreate(t *testing.T) {
	h := tableHost(map[string]string{"/home/u/.cache": "-> /big", "/big": "dir", "/w/file": "file"})
	p := mustTOML(t, `fs.rw = [{ path = "~/.cache/go", create = true }, { path = "~/.cache", create = true }, { path = "file/x", create = true }]`)
	r := mustResolve(t, p, h)
	if len(r.Create) != 2 || r.Create[0].Path != "/big/go" || len(r.Paths) != 1 || len(r.Skipped) != 2 {
		t.Errorf("create %+v, skipped %+v", r.Create, r.Skipped)
	}
}

// TestResolveNet has one row for each combination of the three settings.
func TestResolveNet(t *testing.T) {
	h := tableHost(nil)
	for _, tt := range []struct{ toml, mode, from, connect, bind string }{
		{"", "open", "default", "", ""},
		{"allow = true", "open", "p.toml:2:9", "", ""},
		{"allow = false", "none", "p.toml:2:9", "", ""},
		{"connect_tcp = [443]", "ports", "p.toml:2:16", "443", ""},
		{"bind_tcp = [80, 81]", "ports", "p.toml:2:13", "", "80 81"},
		{"allow = false\nconnect_tcp = [443]\nbind_tcp = [80]", "ports", "p.toml:3:16", "443", "80"},
		{"allow = true\nconnect_tcp = [443]", "ports", "p.toml:3:16", "443", ""},
		{"connect_tcp = []", "none", "an empty list of ports", "", ""},
		{"allow = true\nconnect_tcp = []\nbind_tcp = [80]", "ports", "p.toml:4:13", "", "80"},
	} {
		n := mustResolve(t, mustTOML(t, "[net]\n"+tt.toml), h).Net
		got := []string{string(n.Mode), n.From.String(), ports(n.ConnectTCP), ports(n.BindTCP)}
		if want := []string{tt.mode, tt.from, tt.connect, tt.bind}; !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %q, want %q", tt.toml, got, want)
		}
	}
	file := mustTOML(t, "net.allow = true")
	flag := &Policy{Net: Net{ConnectTCP: []Port{{443, Origin{Source: "--connect-tcp"}}}}}
	_, err := Merge(file, flag).Resolve(h)
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeContradiction || !strings.Contains(err.Error(), "p.toml:1:13") || !strings.Contains(err.Error(), "--connect-tcp") {
		t.Errorf("a contradiction: %v", err)
	}
	off := &Policy{Net: Net{Allow: &Flag{false, Origin{Source: "--no-net"}}}}
	if r := mustResolve(t, Merge(file, flag, off), h); r.Net.Mode != NetPorts {
		t.Errorf("with --no-net: %+v", r.Net)
	}
	if _, err := (&Policy{Net: Net{BindTCP: []Port{{}}}}).Resolve(h); err == nil {
		t.Error("port 0 is no error")
	}
}

func ports(list []Port) string {
	var s []string
	for _, p := range list {
		s = append(s, fmt.Sprint(p.Number))
	}
	return strings.Join(s, " ")
}

func TestResolveSockets(t *testing.T) {
	h := tableHost(map[string]string{"/run/agent": "socket", "/w/l": "-> /run/agent", "/run/pg": "dir", "/w/file": "file"})
	h.Env = append(h.Env, "SSH_AUTH_SOCK=/w/l")
	r := mustResolve(t, mustTOML(t, `net.unix = ["$SSH_AUTH_SOCK", "/run/pg", { path = "$NOPE", optional = true }, { path = "/gone", optional = true }]`), h)
	if len(r.Net.Unix) != 2 || r.Net.Unix[0].Path != "/run/agent" || r.Net.Unix[0].Mode&fs.ModeSocket == 0 || len(r.Skipped) != 2 {
		t.Errorf("%+v, skipped %+v", r.Net.Unix, r.Skipped)
	}
	if !contains(r.Env, "SSH_AUTH_SOCK=/w/l") {
		t.Errorf("the agent's variable is not passed on: %q", r.Env)
	}
	for _, bad := range []string{"file", "/gone", "$NOPE"} {
		if _, err := (&Policy{Net: Net{Unix: []Named{{Value: bad}}}}).Resolve(h); err == nil {
			t.Errorf("%s is no error", bad)
		}
	}
}

// TestResolveDeny checks how denials are anchored, and which are refused.
func TestResolveDeny(t *testing.T) {
	h := tableHost(map[string]string{
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
		p := &Policy{FS: FS{Deny: []Deny{{tt.pattern, Origin{}}}}}
		r, err := p.Resolve(h)
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
	for _, bad := range []string{"", "/", "/..", "..", "../..", "/*", "/**", "../**", "*/../x", "[", "a**", "{a,b}", "!x", "$NOPE/x", "a\x00", `a\`} {
		p := &Policy{FS: FS{Deny: []Deny{{bad, Origin{}}}}}
		if r, err := p.Resolve(h); err == nil {
			t.Errorf("%q is %+v", bad, r.Deny)
		}
	}
}

// TestResolveCase checks that on macOS a path is spelled as the file system
// spells it, whatever case it was written in, and that Linux is left alone.
func TestResolveCase(t *testing.T) {
	h := tableHost(map[string]string{"/Users/me/.ssh/id": "file", "/Users/me/Src": "-> .ssh", "/Users/me/u\u0308": "dir"})
	exact := h.Lstat
	names := map[string][]string{"/": {"Users", "w"}, "/Users": {"me"}, "/Users/me": {".ssh", "Src", "u\u0308"}, "/Users/me/.ssh": {"id"}}
	reads := 0
	h.ReadDir = func(dir string) ([]fs.DirEntry, error) {
		reads++
		var list []fs.DirEntry
		for _, n := range names[dir] {
			list = append(list, entryName(n))
		}
		return list, nil
	}
	h.Lstat = func(p string) (Stat, error) { // a volume that does not mind case
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
		"~/Ü": "/Users/me/u\u0308", "/users/me/.Ssh": "/Users/me/.ssh",
	} {
		p := rules(Read, in)
		p.FS.Deny = []Deny{{Pattern: in}, {Pattern: in + "/*"}}
		r := mustResolve(t, p, h)
		if r.Paths[0].Path != want || r.Deny[0].Pattern != want || r.Deny[1].Pattern != want+"/*" {
			t.Errorf("%s is %s, denied as %s and %s, want %s", in, r.Paths[0].Path, r.Deny[0].Pattern, r.Deny[1].Pattern, want)
		}
		if v := r.Allowed(strings.ToUpper(want), Read); v.Path != want && !strings.Contains(want, "\u0308") {
			t.Errorf("asked for %s, got %+v", strings.ToUpper(want), v)
		}
	}
	if r := mustResolve(t, &Policy{FS: FS{Deny: []Deny{{Pattern: "~/Src/key"}}}}, h); r.Deny[0].Pattern != "/Users/me/.ssh/key" || len(r.Deny[0].Links) != 1 {
		t.Errorf("%+v", r.Deny)
	}
	reads = 0
	builtIn := rules(Read, "/Users/me/.ssh", "/Users/me")
	for i := range builtIn.FS.Rules {
		builtIn.FS.Rules[i].Origin.Source = "baseline"
	}
	mustResolve(t, builtIn, h)
	h.OS = "linux"
	mustResolve(t, rules(Read, "/Users/me/.ssh"), h)
	if reads != 0 {
		t.Errorf("%d directories were read for paths that are spelled right", reads)
	}
}

// entryName is a directory entry of which only the name is known.
type entryName string

func (e entryName) Name() string               { return string(e) }
func (e entryName) IsDir() bool                { return false }
func (e entryName) Type() fs.FileMode          { return 0 }
func (e entryName) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }
