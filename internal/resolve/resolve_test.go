package resolve

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// TestResolvePaths has one row for each way to write a path.
func TestResolvePaths(t *testing.T) {
	h := hosttest.Table(map[string]string{
		"/w/src/main.go": "file", "/w/link": "-> /data/real", "/data/real/x": "file",
		"/w/a/up": "-> ../../data", "/w/self": "-> .", "/w/top": "-> /", "/w/cwd/x": "file", "/w/~": "dir", "/w/a$b": "dir",
		"/home/u/.config/git": "dir", "/home/u/.cache": "-> /big/cache", "/big/cache": "dir", "/w/chain1": "-> chain2", "/w/chain2": "-> src/main.go",
		"/w/ü/日本": "dir", "/etc/resolv.conf": "-> ../run/resolve/stub.conf", "/run/resolve/stub.conf": "file",
		"/w/updir": "-> a/..", "/w/abs": "-> /w/rel", "/w/rel": "-> a/../src", "/dev/null": "device", "/w/pipe": "fifo", "/var": "dir",
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
		{"${REL:-/big}/cache", "/big/cache", ""}, // defaults are for directories: another value counts as unset
		{"link", "/data/real", "/w/link"},
		{"link/x", "/data/real/x", "/w/link"},
		{"link/../src", "/w/src", ""}, // lexically
		{"a/up/real", "/data/real", "/w/a/up"},
		{"self/self/src", "/w/src", "/w/self /w/self"},
		{"top", "/", "/w/top"},
		{"top/w/link", "/data/real", "/w/top /w/link"},
		{"chain1", "/w/src/main.go", "/w/chain1 /w/chain2"},
		{"abs", "/w/src", "/w/abs /w/rel"},
		{"updir", "/w", "/w/updir"},
		{strings.Repeat("self/", 40) + "src", "/w/src", strings.TrimSpace(strings.Repeat("/w/self ", 40))},
		{"~/.cache", "/big/cache", "/home/u/.cache"},
		{"/etc/resolv.conf", "/run/resolve/stub.conf", "/etc/resolv.conf"},
		{"ü/日本", "/w/ü/日本", ""},
		{"/dev/null", "/dev/null", ""},
		{"pipe", "/w/pipe", ""},
	} {
		r, err := Policy(rules(policy.Read|policy.Write, tt.path), h)
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
		if len(p.Links) == 0 && !host.Within(p.Path, p.Written) {
			t.Errorf("%q leads outside without a link: %+v", tt.path, p)
		}
	}
}

// TestResolveErrors checks the message for each wrong path, all in one error, and that an optional
// rule is skipped instead if the machine is the reason.
func TestResolveErrors(t *testing.T) {
	h := hosttest.Table(map[string]string{
		"/w/file": "file", "/w/loop": "-> loop", "/w/a": "-> b", "/w/b": "-> a/x", "/w/gone": "-> /nowhere/x",
		"/w/secret": "locked", "/proc/self": "-> 42", "/proc/42/status": "file", "/proc/sys/vm": "dir", "/sys/fs/cgroup/user": "dir",
		"/w/cg": "-> /sys/fs/cgroup", "/w/empty": "-> ", "/w/self": "-> .",
	})
	h.Env = append(h.Env, "EMPTY=", "BELL=\a")
	long := map[string]string{}
	for i := range 60 {
		long[fmt.Sprintf("/chain/%d", i)] = fmt.Sprintf("-> %d", i+1)
	}
	long["/chain/60"] = "file"
	chain := hosttest.Table(long)
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
		code       policy.Code
		skip       bool
	}{
		{"nope", "/w/nope does not exist", policy.CodeMissing, true},
		{"nope/deeper", "/w/nope/deeper: /w/nope does not exist", policy.CodeMissing, true},
		{"file/x", "/w/file/x: /w/file is not a directory", policy.CodeMissing, true},
		{"gone", "/w/gone: /nowhere does not exist", policy.CodeMissing, true},
		{"empty", "/w/empty", policy.CodeMissing, true},
		{"loop", "/w/loop: too many levels of symbolic links", policy.CodePath, true},
		{"a", "/w/a: too many levels of symbolic links", policy.CodePath, true},
		{"/chain/0", "/chain/0: too many levels of symbolic links", policy.CodePath, true},
		{strings.Repeat("self/", 41), "too many levels of symbolic links", policy.CodePath, true},
		{"secret", "/w/secret: permission denied", policy.CodePath, true},
		{"$NOPE/x", "$NOPE is not set, or empty (a dollar sign is written $$)", policy.CodeVariable, true},
		{"$EMPTY/x", "$EMPTY is not set, or empty", policy.CodeVariable, true},
		{"$BELL", "$BELL has a control character", policy.CodeValue, false},
		{"", "an empty path", policy.CodeValue, false},
		{"a\nb", "has a control character", policy.CodeValue, false},
		{"~v/x", "another user's home", policy.CodeValue, false},
		{"/proc/42", "/proc/42 must not be writable", policy.CodeRefused, false},
		{"/proc/sys/vm", "must not be writable", policy.CodeRefused, false},
		{"/proc/self", "/proc/self would be the directory of zsbx itself", policy.CodeRefused, false},
		{"/sys/fs/cgroup", "must not be writable", policy.CodeRefused, false},
		{"cg/user", "/sys/fs/cgroup/user must not be writable", policy.CodeRefused, false},
	} {
		r, err := Policy(rules(policy.Read|policy.Write, tt.path), h)
		var e *policy.Error
		if r != nil || !errors.As(err, &e) {
			t.Errorf("%q: %+v, %v", tt.path, r, err)
			continue
		}
		if e.Code != tt.code || !strings.Contains(e.Msg, tt.want) || e.Origin != (policy.Origin{Source: "test", Line: 1, Column: 1}) {
			t.Errorf("%q: %s %v, want %s %s", tt.path, e.Code, e, tt.code, tt.want)
		}
		made := e.Code == policy.CodeMissing && tt.path != "file/x"
		if strings.HasPrefix(e.Hint, "mkdir -p /") != made {
			t.Errorf("%q: hint %q", tt.path, e.Hint)
		}
		p := rules(policy.Read|policy.Write, tt.path)
		p.FS.Rules[0].Optional = true
		r, err = Policy(p, h)
		if skipped := err == nil && len(r.Paths) == 0 && len(r.Skipped) == 1 && r.Skipped[0].Reason != ""; skipped != tt.skip {
			t.Errorf("optional %q: %+v, %v", tt.path, r, err)
		}
	}
	if _, err := Policy(rules(policy.Read, "nope", "/", "", "loop"), h); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("not all three errors at once: %v", err)
	}
	// The kernel follows a chain of forty links.
	if r, err := Policy(rules(policy.Read, "/chain/20"), h); err != nil || r.Paths[0].Path != "/chain/60" {
		t.Errorf("forty links: %v", err)
	}
	if _, err := Policy(rules(policy.Read, "/chain/0", "/chain/20", "/chain/40"), h); err == nil || strings.Count(err.Error(), "\n") != 0 {
		t.Errorf("one chain too long spoils others: %v", err)
	}
}

func both(a, b func(string) (host.Stat, error)) func(string) (host.Stat, error) {
	return func(p string) (host.Stat, error) {
		if strings.HasPrefix(p, "/chain") {
			return b(p)
		}
		return a(p)
	}
}

func TestResolveNoHome(t *testing.T) {
	h := hosttest.Table(nil)
	h.Home, h.Env = "", nil
	if _, err := Policy(rules(policy.Read, "~/x"), h); err == nil || !strings.Contains(err.Error(), "$HOME is not set") {
		t.Errorf("got %v", err)
	}
	p := rules(policy.Read, "~/x")
	p.FS.Rules[0].Optional = true
	if r := mustResolve(t, p, h); len(r.Skipped) != 1 {
		t.Errorf("not skipped: %+v", r)
	}
}

func TestResolveHost(t *testing.T) {
	for name, change := range map[string]func(*host.Host){
		"OS":       func(h *host.Host) { h.OS = "plan9" },
		"no dir":   func(h *host.Host) { h.Dir = "" },
		"relative": func(h *host.Host) { h.Dir = "w" },
		"unclean":  func(h *host.Host) { h.Dir = "/w/" },
		"home":     func(h *host.Host) { h.Home = "u" },
		"temp":     func(h *host.Host) { h.TempDir = "tmp" },
		"blind":    func(h *host.Host) { h.Lstat = nil },
	} {
		h := hosttest.Table(nil)
		change(&h)
		if r, err := Policy(&policy.Policy{}, h); err == nil || r != nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestResolveTooMany(t *testing.T) {
	h := hosttest.Table(nil)
	p := &policy.Policy{}
	for range policy.MaxRules {
		p.FS.Rules = append(p.FS.Rules, policy.Rule{Path: "/w", Access: policy.Read})
	}
	p.FS.Rules = append(p.FS.Rules, policy.Rule{Path: "/w", Access: policy.Read, Optional: true})
	if _, err := Policy(p, h); err != nil {
		t.Errorf("%d rules and an optional one: %v", policy.MaxRules, err)
	}
	p.FS.Rules[policy.MaxRules].Optional = false
	var e *policy.Error
	if _, err := Policy(p, h); !errors.As(err, &e) || e.Code != policy.CodeLimit {
		t.Errorf("%d rules: %v", policy.MaxRules+1, err)
	}
}

// TestResolveSystems checks that overrides for one system apply only to it, and that what a later
// policy says for all systems overrides them.
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
	h := hosttest.Table(map[string]string{"/bin": "dir"})
	r := mustResolve(t, user, h)
	if r.Net.Mode != NetNone || len(r.Paths) != 3 || r.Limits.Timeout.Value != 0 {
		t.Errorf("linux: %+v", r)
	}
	mac := h
	mac.OS = "macos"
	if r := mustResolve(t, user, mac); r.Net.Mode != NetOpen || len(r.Paths) != 1 || r.Limits.Timeout.Value == 0 {
		t.Errorf("macos: %+v", r)
	}
	flags := &policy.Policy{}
	flags.Net.Allow = policy.Named{Value: "true", Origin: policy.Origin{Source: "--net"}}
	flags.FS.System.Executable = []policy.Rule{}
	flags.Env.Set = []policy.Named{{Name: "A", Value: "flag", Origin: policy.Origin{Source: "--env"}}}
	r = mustResolve(t, policy.Merge(user, flags), h)
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
	h := hosttest.Table(map[string]string{"/usr": "dir", "/bin": "-> usr", "/dev/null": "device", "/etc": "dir"})
	base := mustTOML(t, "[fs.system]\nexecutable = ['/usr']\nread_only = ['/etc']\nread_write = ['/dev/null']\n")
	own := mustTOML(t, "[fs.system]\nexecutable = ['/bin']\nread_only = []\n")
	var got []string
	for _, p := range mustResolve(t, policy.Merge(base, own), h).Paths {
		got = append(got, p.Access.String()+" "+p.Path)
	}
	if want := []string{"rox /usr", "rw_noexec /dev/null"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestResolveTempDir(t *testing.T) {
	h := hosttest.Table(map[string]string{"/tmp/zsbx-$1": "dir"})
	h.TempDir = "/tmp/zsbx-$1"
	r := mustResolve(t, &policy.Policy{}, h)
	if len(r.Paths) != 1 || r.Paths[0].Path != h.TempDir || r.Paths[0].Access != policy.Read|policy.Write|policy.Exec || r.Paths[0].Rule.Origin.Source != "private temporary directory" {
		t.Errorf("%+v", r.Paths)
	}
	h.TempDir = "/tmp/not-made-yet"
	if r := mustResolve(t, &policy.Policy{}, h); len(r.Paths) != 0 || len(r.Skipped) != 1 {
		t.Errorf("%+v", r)
	}
}

func TestResolveCreate(t *testing.T) {
	h := hosttest.Table(map[string]string{"/home/u/.cache": "-> /big", "/big": "dir", "/w/file": "file"})
	p := mustTOML(t, `fs.rw = [{ path = "~/.cache/go", create = true }, { path = "~/.cache", create = true }, { path = "file/x", create = true }]`)
	r := mustResolve(t, p, h)
	if len(r.Create) != 2 || r.Create[0].Path != "/big/go" || len(r.Paths) != 1 || len(r.Skipped) != 2 {
		t.Errorf("create %+v, skipped %+v", r.Create, r.Skipped)
	}
}
