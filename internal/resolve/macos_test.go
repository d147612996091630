package resolve

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/policy"
)

// macHost is tableHost for a Mac, with directories that can be listed.
func macHost(files map[string]string, env ...string) host.Host {
	all := map[string]string{
		"/tmp": "-> private/tmp", "/var": "-> private/var", "/etc": "-> private/etc", "/private/tmp": "dir", "/private/var": "dir",
		"/Users/me/proj": "dir",
	}
	maps.Copy(all, files)
	h := hosttest.Table(all)
	h.OS, h.Home, h.Dir = "macos", "/Users/me", "/Users/me/proj"
	h.Env = append([]string{"HOME=/Users/me", "PATH=/usr/bin:/bin"}, env...)
	h.ReadDir = func(dir string, n int) ([]fs.DirEntry, error) {
		var names []fs.DirEntry
		for _, p := range slices.Sorted(maps.Keys(all)) {
			for ; p != "/"; p = path.Dir(p) {
				if path.Dir(p) == dir && !slices.ContainsFunc(names, func(e fs.DirEntry) bool { return e.Name() == path.Base(p) }) {
					names = append(names, entryName(path.Base(p)))
				}
			}
		}
		return names, nil
	}
	return h
}

// tempValues returns the variables of a resolved policy that name a directory.
func tempValues(r *Resolved, dirs ...string) map[string]string {
	found := map[string]string{}
	for _, e := range r.Env {
		name, value, _ := strings.Cut(e, "=")
		if name == tempSuffix || slices.ContainsFunc(dirs, func(d string) bool { return strings.Contains(value, d) }) {
			found[name] = value
		}
	}
	return found
}

// TestTemporaryFiles is the whole table, for both systems and each kind of
// place.
func TestTemporaryFiles(t *testing.T) {
	for _, c := range []struct {
		os, dir, in string // in is how the variables write dir
		more        map[string]string
		cache       string
	}{
		{"linux", "/home/zsbx-7", "/home/zsbx-7", nil, ""},
		{"macos", "/private/tmp/zsbx-7", "/tmp/zsbx-7", map[string]string{
			"xcrun_db": "/tmp/zsbx-7/xcrun_db", "CLANG_MODULE_CACHE_PATH": "/tmp/zsbx-7/clang-modules",
		}, ""},
		{"macos", "/private/var/folders/ab/cd/T/zsbx-7", "/var/folders/ab/cd/T/zsbx-7", map[string]string{
			"xcrun_db": "/var/folders/ab/cd/T/zsbx-7/xcrun_db", "CLANG_MODULE_CACHE_PATH": "/var/folders/ab/cd/T/zsbx-7/clang-modules",
			"DIRHELPER_USER_DIR_SUFFIX": "zsbx-7",
		}, "/private/var/folders/ab/cd/C/zsbx-7"},
		{"macos", "/Volumes/D/T/zsbx-7", "/Volumes/D/T/zsbx-7", map[string]string{
			"xcrun_db": "/Volumes/D/T/zsbx-7/xcrun_db", "CLANG_MODULE_CACHE_PATH": "/Volumes/D/T/zsbx-7/clang-modules",
		}, ""},
	} {
		want := map[string]string{
			"TMPDIR": c.in, "TMP": c.in, "TEMP": c.in, "TMUX_TMPDIR": c.in,
			"XDG_RUNTIME_DIR": c.in + "/run", "SCREENDIR": c.in + "/run", "TMPPREFIX": c.in + "/zsh",
			"JAVA_TOOL_OPTIONS": "-Djava.io.tmpdir=" + c.in,
		}
		maps.Copy(want, c.more)
		files := map[string]string{c.dir: "dir"}
		if c.cache != "" {
			files[c.cache] = "dir"
		}
		h := macHost(files, "TMPPREFIX=/tmp/zsh", "DIRHELPER_USER_DIR_SUFFIX=other")
		h.OS, h.TempDir = c.os, c.dir
		r := mustResolve(t, &policy.Policy{}, h)
		got := tempValues(r, c.in)
		if c.os == "linux" || c.cache == "" {
			delete(got, tempSuffix)
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s, %s:\n%v\nwant\n%v", c.os, c.dir, got, want)
		}
		for _, dir := range []string{c.dir, c.cache} {
			if dir != "" && r.access(dir+"/x") != policy.Read|policy.Write|policy.Exec {
				t.Errorf("%s is not open", dir)
			}
		}
	}
}

// TestPrivateCache: only for a directory directly in a user's own.
func TestPrivateCache(t *testing.T) {
	for in, want := range map[string]string{
		"/private/var/folders/ab/cd/T/x": "/private/var/folders/ab/cd/C/x",
		"/var/folders/ab/cd/T/x":         "/var/folders/ab/cd/C/x",
		"/var/folders/ab/cd/T":           "", "/var/folders/ab/cd/T/x/y": "", "/var/folders/ab/cd/C/x": "", "/var/folders//cd/T/x": "",
		"/evil/var/folders/ab/cd/T/x": "", "/tmp/x": "", "": "",
	} {
		if got := PrivateCache(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestDeveloperDirectory: all of the selected Xcode can be run, whatever link or variable selects
// it; others stay closed.
func TestDeveloperDirectory(t *testing.T) {
	const beta, other = "/Applications/Xcode_16.4.app/Contents", "/Applications/Xcode_26.app/Contents"
	files := map[string]string{
		beta + "/Developer/usr/bin/git": "file", beta + "/Info.plist": "file", beta + "/SharedFrameworks/D.framework/D": "file",
		other + "/Developer/usr/bin/git": "file", other + "/Info.plist": "file",
		"/Library/Developer/CommandLineTools/usr/bin/git": "file",
	}
	for name, c := range map[string]struct {
		link, target string
		env          []string
	}{
		"xcode-select": {"/private/var/db/xcode_select_link", beta + "/Developer", nil},
		"select":       {"/private/var/select/developer_dir", beta + "/Developer", nil},
		"the app":      {"/private/var/db/xcode_select_link", strings.TrimSuffix(beta, "/Contents"), nil},
		"a variable":   {"", "", []string{"DEVELOPER_DIR=" + beta + "/Developer"}},
		"an app":       {"", "", []string{"DEVELOPER_DIR=" + strings.TrimSuffix(beta, "/Contents")}},
	} {
		all := maps.Clone(files)
		if c.link != "" {
			all[c.link] = "-> " + c.target
		}
		r := mustResolve(t, policy.Baseline("macos"), macHost(all, c.env...))
		for _, f := range []string{beta + "/Info.plist", beta + "/SharedFrameworks/D.framework/D", beta + "/Developer/usr/bin/git", "/Library/Developer/CommandLineTools/usr/bin/git"} {
			if r.access(f) != policy.Read|policy.Exec {
				t.Errorf("%s: %s: %v", name, f, r.access(f))
			}
		}
		if got := r.access(other + "/Info.plist"); got != 0 {
			t.Errorf("%s: the Xcode beside it: %v", name, got)
		}
		if got := r.access("/Applications/Xcode_16.4.app/x"); got != 0 {
			t.Errorf("%s: beside Contents: %v", name, got)
		}
	}
	// A user's rule is not widened.
	own := rules(policy.Read|policy.Exec, beta+"/Developer")
	if r := mustResolve(t, own, macHost(files)); r.access(beta+"/Info.plist") != 0 {
		t.Error("a rule of the user's was widened")
	}
}

// TestRealHome: the home directory as the kernel has it.
func TestRealHome(t *testing.T) {
	h := macHost(map[string]string{"/Volumes/D/me/proj": "dir"})
	lstat, readlink := h.Lstat, h.Readlink
	h.Lstat = func(p string) (host.Stat, error) {
		if p == "/Users/me" {
			return host.Stat{Mode: fs.ModeSymlink | 0o777}, nil
		}
		return lstat(p)
	}
	h.Readlink = func(p string) (string, error) {
		if p == "/Users/me" {
			return "/Volumes/D/me", nil
		}
		return readlink(p)
	}
	h.Dir = "/Volumes/D/me/proj"
	if r := mustResolve(t, &policy.Policy{}, h); r.Home != "/Users/me" || r.RealHome != "/Volumes/D/me" {
		t.Errorf("%s, %s", r.Home, r.RealHome)
	}
	h.OS = "linux"
	if r := mustResolve(t, &policy.Policy{}, h); r.RealHome != "" {
		t.Errorf("on Linux: %s", r.RealHome)
	}
}

// TestJavaHome: the last JDK by name in the first place that has one.
func TestJavaHome(t *testing.T) {
	jvm := &policy.Policy{Presets: []policy.Named{{Value: "jvm:tools"}}}
	value := func(h host.Host, p *policy.Policy) string {
		for _, e := range mustResolve(t, p, h).Env {
			if v, ok := strings.CutPrefix(e, "JAVA_HOME="); ok {
				return v
			}
		}
		return ""
	}
	const system = "/Library/Java/JavaVirtualMachines"
	files := map[string]string{
		system + "/jdk1.8.0_292.jdk/Contents/Home/bin/java": "file", system + "/temurin-21.jdk/Contents/Home/bin/java": "file",
		system + "/zulu-9.jdk/Contents/Home/bin/java": "file", system + "/broken-99.jdk/Contents/x": "file",
		"/opt/homebrew/opt/openjdk/libexec/openjdk.jdk/Contents/Home/bin/java": "file",
	}
	if got := value(macHost(files), jvm); got != system+"/zulu-9.jdk/Contents/Home" {
		t.Error(got)
	}
	if got := value(macHost(files, "JAVA_HOME=/own"), jvm); got != "/own" {
		t.Errorf("the caller's own became %s", got)
	}
	if got := value(macHost(files), &policy.Policy{}); got != "" {
		t.Errorf("without Java: %s", got)
	}
	if got := value(macHost(nil), jvm); got != "" {
		t.Errorf("without a JDK: %s", got)
	}
	linux := macHost(files)
	linux.OS = "linux"
	if got := value(linux, jvm); got != "" {
		t.Errorf("on Linux: %s", got)
	}
	own := map[string]string{"/Users/me/Library/Java/JavaVirtualMachines/x-17.jdk/Contents/Home/bin/java": "file"}
	maps.Copy(own, files)
	if got := value(macHost(own), jvm); !strings.HasPrefix(got, "/Users/me/") {
		t.Error(got)
	}
}

// TestMacCargo: cargo fetches by git on a Mac only.
func TestMacCargo(t *testing.T) {
	const variable = "CARGO_NET_GIT_FETCH_WITH_CLI=true"
	rust, err := policy.Preset("rust")
	if err != nil {
		t.Fatal(err)
	}
	h := macHost(nil)
	for os, want := range map[string]bool{"macos": true, "linux": false} {
		h.OS = os
		if got := slices.Contains(mustResolve(t, rust, h).Env, variable); got != want {
			t.Errorf("%s: %v", os, got)
		}
	}
}

// TestMacTokens: with every preset at once, on a Mac that has everything that they name, no file
// with a token is open, and no program on PATH can be written.
func TestMacTokens(t *testing.T) {
	h := macHost(nil)
	h.Lstat = func(string) (host.Stat, error) { return host.Stat{Mode: fs.ModeDir | 0o755}, nil }
	all := []*policy.Policy{policy.Baseline("macos")}
	for _, info := range presets.All() {
		p, err := policy.Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	r := mustResolve(t, policy.Merge(all...), h)
	tokens := append(secretFilesOf(), "Library/Keychains/login.keychain-db", "Library/Application Support/pypoetry/auth.toml",
		"Library/Application Support/Google/Chrome/Default/Cookies", "Library/Application Support/pdm/config.toml",
		".android/adbkey", "Library/Cookies/x", "Library/LaunchAgents/x.plist")
	for _, f := range tokens {
		if got := r.access("/Users/me/" + f); got != 0 {
			t.Errorf("~/%s: %v", f, got)
		}
	}
	for f, want := range map[string]policy.Access{ // the controls
		"Library/Application Support/go/env": policy.Read, "Library/Application Support/fnm/node-versions/v22/installation/bin/node": policy.Read | policy.Exec,
		"Library/Python/3.12/bin/pytest": policy.Read | policy.Exec, "Library/Python/3.12/lib/python/site-packages/x.so": policy.Read | policy.Exec,
		"Library/Caches/pnpm/dlx/x": policy.Read | policy.Exec, "Library/Caches/mise/x": 0, "Library/Caches/Mozilla.sccache/x": 0,
		"Library/Caches/org.swift.swiftpm/x": policy.Read, "Library/Caches/CocoaPods/x": policy.Read | policy.Write, "Library/Android/sdk/build-tools/x": policy.Read | policy.Exec, ".cocoapods/repos/x/.git/hooks/x": policy.Read,
	} {
		if got := r.access("/Users/me/" + f); got != want {
			t.Errorf("~/%s: %v, want %v", f, got, want)
		}
	}
}
