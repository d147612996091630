package resolve

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

// TestRelocations points every variable that moves a preset's directories at
// places that programs outside run or trust: none becomes writable.
func TestRelocations(t *testing.T) {
	h, p := homeWithEverything(t)
	hosttest.Mkdirs(&h, t, "project/.git/hooks", "project/.vscode", "project/.cache", ".config/fish/functions", ".config/systemd/user", ".config/nvim/lua",
		".local/bin", ".local/lib/python3/site-packages", ".local/share/uv/tools", ".local/share/applications", "caches/own")
	hosttest.Write(&h, t, ".bashrc", "")
	var asked []string
	for _, list := range [][]string{StartupFiles("macos"), places("programs"), {"project/.git", "project/.git/hooks", "project/.vscode"}} {
		for _, name := range list {
			asked = append(asked, filepath.Join(h.Home, name))
		}
	}
	asked = append(asked, "/etc", "/usr/lib", "/usr/bin", "/etc/profile.d", "/usr/lib/python3")
	values := append([]string{"/", "/usr", "/var", h.Home, h.Home + "/.local", h.Home + "/.local/share", h.Home + "/.config"}, asked...)
	for _, variable := range relocations() {
		few := movedBy(h, p, variable) // all presets for each place would take half a minute
		for _, value := range values {
			h.Env = []string{variable + "=" + value, "PATH=/usr/games"}
			r, err := Policy(few, h)
			if err != nil {
				t.Fatalf("%s=%s: %v", variable, value, err)
			}
			for _, place := range asked {
				for i := range r.Paths {
					if q := &r.Paths[i]; q.Access&policy.Write != 0 && (host.Within(place, q.Path) || host.Within(q.Path, place)) {
						t.Errorf("%s=%s: %s is writable by %s", variable, value, place, q.Path)
					}
				}
			}
		}
	}
	// Other paths stay writable, and so does each of these if the user asks for it.
	for _, value := range []string{h.Home + "/caches/own", h.Home + "/project/.cache"} {
		h.Env = []string{"GOCACHE=" + value, "PATH=/usr/bin"}
		if r, err := Policy(p, h); err != nil || r.access(value)&policy.Write == 0 {
			t.Errorf("GOCACHE=%s is not writable: %v", value, err)
		}
	}
	r, err := Policy(policy.Merge(p, &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: "~/.config/fish", Access: policy.Read | policy.Write, Origin: policy.Origin{Source: "--rw"}}}}}), h)
	if err != nil || r.access(h.Home+"/.config/fish")&policy.Write == 0 {
		t.Errorf("--rw ~/.config/fish: %v", err)
	}
}

// movedBy returns a policy without the rules that a variable does not move.
func movedBy(h host.Host, p *policy.Policy, variable string) *policy.Policy {
	usual, moved := h, h
	usual.Env, moved.Env = nil, []string{variable + "=/moved"}
	few, linux := *p, *cmp.Or(p.Linux, &policy.Policy{})
	for _, part := range []*policy.Policy{&few, &linux} {
		part.FS.Rules = slices.DeleteFunc(slices.Clone(part.FS.Rules), func(r policy.Rule) bool {
			return (&view{Host: usual}).expanded(r.Path) == (&view{Host: moved}).expanded(r.Path)
		})
	}
	few.Linux = &linux
	return &few
}

// TestSystemPlaces has paths that exist on no machine of the tests.
func TestSystemPlaces(t *testing.T) {
	g := &guard{home: "/home/u"}
	for p, want := range map[string]bool{
		"/etc/profile.d/x": true, "/usr/lib/python3": true, "/usr": true, "/usr/local": true, "/usr/local/share": true, "/var": true, "/boot": true,
		"/home/u/.config": true, "/home/u/.config/fish/x": true, "/home/u/w/.git/x": true, "/srv/w/.git": true, "/home/u/.local": true,
		"/usr/local/cargo/registry": false, "/usr/local/rustup": false, "/go/pkg/mod": false, "/opt/cache": false, "/var/cache/go": false,
		"/builds/x/.cache": false, "/home/u/.cache/go-build": false, "/home/u/.cargo/registry": false, "/home/v/.cache": false, "/home/u/.configs": false,
	} {
		got := g.usedOutside(&Path{Path: p, Mode: fs.ModeDir})
		if (got != "") != want {
			t.Errorf("%s: %q", p, got)
		}
	}
	for _, list := range [][]string{StartupFiles("macos"), places("programs"), places("system"), places("project")} {
		for _, name := range list {
			if filepath.Clean(name) != name || strings.HasSuffix(name, "/") {
				t.Errorf("%q is not clean", name)
			}
		}
	}
}
