package seatbelt_test

import (
	"io/fs"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestMacTools asks the default policy's profile, made from flags and presets, about what the
// tools of a Mac do, above all the shims in /usr/bin, with an Xcode that is not
// /Applications/Xcode.app.
func TestMacTools(t *testing.T) {
	const xcode, temp = "/Applications/Xcode_16.4.app/Contents", "/private/var/folders/ab/cd/T/zsbx-7"
	links := map[string]string{
		"/private/var/db/xcode_select_link": xcode + "/Developer", "/Users/me": "/Volumes/D/me",
		"/tmp": "/private/tmp", "/var": "/private/var", "/etc": "/private/etc", "/run": "/private/var/run",
		"/Volumes/D/me/.local/state/fnm_multishells/1_2": "/Volumes/D/me/Library/Application Support/fnm/node-versions/v22/installation",
		"/private/var/run/current-system":                "/nix/store/1-darwin-system", "/nix/store/1-darwin-system/sw": "/nix/store/2-system-path",
	}
	h := host.Host{
		OS: "macos", Dir: "/Volumes/D/me/proj", Home: "/Users/me", TempDir: temp, Env: []string{"PATH=/usr/bin:/bin", "FNM_MULTISHELL_PATH=/Users/me/.local/state/fnm_multishells/1_2"},
		Lstat: func(p string) (host.Stat, error) {
			switch {
			case links[p] != "":
				return host.Stat{Mode: fs.ModeSymlink}, nil
			case p == "/Applications/Xcode.app" || p == "/private/var/select/developer_dir":
				return host.Stat{}, fs.ErrNotExist
			}
			return host.Stat{Mode: fs.ModeDir}, nil
		},
		Readlink: func(p string) (string, error) { return links[p], nil },
		ReadDir:  func(string, int) ([]fs.DirEntry, error) { return nil, nil },
	}
	all := []*policy.Policy{policy.Baseline("macos"), {FS: policy.FS{Rules: []policy.Rule{
		{Path: "~", Access: allAccess, Origin: policy.Origin{Source: "--rw"}},
	}}}}
	for _, name := range []string{"python", "go", "node"} {
		p, err := policy.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	resolve := func(ps ...*policy.Policy) *Profile {
		r, err := resolve.Policy(policy.Merge(ps...), h)
		if err != nil {
			t.Fatal(err)
		}
		return compile(t, r, seatbelt.Options{Session: testSession})
	}
	narrow := resolve(append(all[:1:1], all[2:]...)...)
	for _, c := range []struct {
		op   string
		path string
		want bool
	}{
		{"file-read-data", xcode + "/Info.plist", true},
		{"file-map-executable", xcode + "/SharedFrameworks/DVTSystemPrerequisites.framework/Versions/A/DVTSystemPrerequisites", true},
		{"file-map-executable", xcode + "/Developer/usr/lib/libxcrun.dylib", true},
		{"process-exec", xcode + "/Developer/usr/bin/git", true},
		{"file-write-data", xcode + "/Developer/usr/bin/git", false},
		{"file-read-data", "/Applications/Other.app/Contents/Info.plist", false},
		{"file-read-metadata", "/private/var/db/xcode_select_link", true},
		{"file-read-data", "/Library/Preferences/com.apple.dt.Xcode.plist", true},
		{"file-read-data", "/Library/Preferences/com.apple.dt.CommandLineTools.plist", true},
		{"file-read-data", "/Library/Preferences/com.apple.alf.plist", false},
		{"file-write-create", temp + "/xcrun_db", true},
		{"file-write-create", "/private/var/folders/ab/cd/C/zsbx-7/x", true},
		{"file-write-create", "/private/var/folders/ab/cd/T/xcrun_db", false},
		{"file-write-create", "/private/var/folders/ab/cd/C/clang/x", false},
		{"file-write-create", "/private/tmp/zsh1", false},
		{"file-map-executable", "/Volumes/D/me/Library/Python/3.12/lib/python/site-packages/x.so", true},
		{"process-exec", "/Volumes/D/me/Library/Application Support/fnm/node-versions/v22/installation/bin/node", true},
		{"file-read-metadata", "/Volumes/D/me/.local/state/fnm_multishells/1_2", true},
		{"file-read-metadata", "/Volumes/D/me/.local/state/fnm_multishells/3_4", false},
		{"file-read-data", "/Volumes/D/me/Library/Application Support/go/env", true},
		{"file-read-data", "/Volumes/D/me/Library/Application Support/Google/Chrome/Default/Cookies", false},
		{"file-read-data", "/Volumes/D/me/Library/Keychains/login.keychain-db", false},
		{"file-read-data", "/dev/autofs_nowait", true},
		{"process-exec", "/usr/local/share/dotnet/dotnet", true},
		{"process-exec", "/usr/local/texlive/2025/bin/universal-darwin/pdftex", true},
		{"file-map-executable", "/Library/Frameworks/R.framework/Versions/4.5/Resources/lib/libR.dylib", true},
		{"file-map-executable", "/Library/Perl/5.34/darwin-thread-multi-2level/auto/x.bundle", true},
		{"file-read-data", "/opt/homebrew/var/postgres/base", false},
		{"file-write-create", "/usr/local/share/x", false},
		{"file-read-metadata", "/run", true},
		{"file-read-metadata", "/private/var/run/current-system", true},
		{"process-exec", "/nix/store/2-system-path/bin/git", true},
		{"file-read-data", "/private/var/run/utmpx", false},
	} {
		if d := narrow.Decide(c.op, file(c.path)); d.Allowed != c.want {
			t.Errorf("%s on %s: %+v, want %v", c.op, c.path, d, c.want)
		}
	}
	// The whole home directory is writable, and its name is a link.
	wide := resolve(all...)
	for p, want := range map[string]bool{
		"/Volumes/D/me/Library/LaunchAgents/x.plist": false, "/Users/me/Library/LaunchAgents/x.plist": false, "/Volumes/D/me/Library/x.plist": true,
	} {
		if d := wide.Decide("file-write-create", file(p)); d.Allowed != want {
			t.Errorf("%s: %+v, want %v", p, d, want)
		}
	}
}
