package resolve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/policy"
)

func TestGuardPresets(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Mkdirs(&h, t, "bin", "tools/bin", "tools/lib", "cache", "work/sub", ".ssh", ".config/gh", ".cargo/registry", "evil")
	hosttest.Write(&h, t, "tools/bin/prog", "")
	hosttest.Write(&h, t, ".npmrc", "")
	for link, target := range map[string]string{"shims": "tools/bin", "keys": ".ssh", "evil/all": "."} {
		if err := os.Symlink(filepath.Join(h.Home, target), filepath.Join(h.Home, link)); err != nil {
			t.Fatal(err)
		}
	}
	h.Dir = filepath.Join(h.Home, "work/sub")
	h.Env = []string{"PATH=" + h.Home + "/shims:relative:/usr/bin:" + h.Home + "/bin"}

	const dropped = policy.Access(0)
	for _, tt := range []struct {
		access policy.Access
		path   string
		want   policy.Access
	}{
		{policy.Read | policy.Write | policy.Exec, "cache", policy.Read | policy.Write | policy.Exec},
		{policy.Read | policy.Write, ".cargo/registry", policy.Read | policy.Write},
		{policy.Read | policy.Write, "bin", policy.Read},
		{policy.Read | policy.Write | policy.Exec, "tools", policy.Read | policy.Exec},          // has tools/bin in it, which PATH names through a link
		{policy.Read | policy.Write | policy.Exec, "shims", policy.Read | policy.Exec},          // the link itself
		{policy.Read | policy.Write | policy.Exec, "tools/bin/prog", policy.Read | policy.Exec}, // a file in it
		{policy.Read | policy.Write, "tools/lib", policy.Read | policy.Write},
		{policy.Read | policy.Exec, "bin", policy.Read | policy.Exec},
		{policy.Read | policy.Write, "/usr", policy.Read},
		{policy.Read, "/", dropped},
		{policy.Read, "", dropped},         // the home directory
		{policy.Read, "..", dropped},       // above the home directory
		{policy.Read, "evil/all", dropped}, // the same through a link
		{policy.Read, ".ssh", dropped},
		{policy.Read, "keys", dropped},
		{policy.Read, ".config", dropped}, // has gh in it
		{policy.Read, ".npmrc", dropped},
		{policy.Read | policy.Write, "work", dropped},
		{policy.Read | policy.Write, "work/sub", dropped},
		{policy.Read | policy.Exec, "work", policy.Read | policy.Exec},
	} {
		p := presetPath(&h, t, tt.access, tt.path)
		kept, skipped := guardOne(h, p)
		got := dropped
		if len(kept) == 1 {
			got = kept[0].Access
		}
		if got != tt.want || len(skipped) == 0 != (got == tt.access) {
			t.Errorf("%v on %q: got %v, want %v (skipped %v)", tt.access, tt.path, got, tt.want, skipped)
		}
		// Control: the same path in a user's rule stays.
		p.Rule.Origin.Source = "--rw"
		if kept, skipped := guardOne(h, p); len(kept) != 1 || kept[0].Access != tt.access || len(skipped) != 0 {
			t.Errorf("%v on %q as --rw: %v, %v", tt.access, tt.path, kept, skipped)
		}
	}
}

// guardOne puts one path through the guard.
func guardOne(h host.Host, p Path) ([]Path, []Skip) {
	r := &Resolved{Paths: []Path{p}}
	(&resolver{r: r, host: &view{Host: h}, presets: view{Host: h}}).guard()
	return r.Paths, r.Skipped
}

// TestGuardLinks has variables that name links in the project. The project's authors, or an earlier
// command, point them where they like.
func TestGuardLinks(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Mkdirs(&h, t, "project", "repo/.git", "repo/sub", "other/sub", "Documents", "dotfiles", "venvs/real")
	hosttest.Write(&h, t, "dotfiles/gitconfig", "")
	hosttest.Write(&h, t, ".ssh/id", "")
	for link, target := range map[string]string{
		"project/.venv": "Documents", "repo/.venv": "Documents", "other/cache": "Documents", "venvs/link": "venvs/real",
		".gitconfig": "dotfiles/gitconfig", ".bashrc": ".ssh/id",
	} {
		if err := os.Symlink(filepath.Join(h.Home, target), filepath.Join(h.Home, link)); err != nil {
			t.Fatal(err)
		}
	}
	python, err := policy.Preset("python")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		venv, dir, rw, ask string
		want               bool
	}{
		{"project/.venv", "project", "", "Documents", false}, // the project's link
		{"project/.venv", "project", "project", "Documents", false},
		{"repo/.venv", "repo/sub", "", "Documents", false},      // an earlier command's, at the repository's top
		{"other/cache", "other/sub", "", "Documents", true},     // not known to be one project
		{"other/cache", "project", "", "Documents", true},       // nobody can change this one
		{"other/cache", "project", "other", "Documents", false}, // now a command can
		{"venvs/link", "project", "", "venvs/real", true},
		{"", "project", "", "dotfiles/gitconfig", true},
		{"", "project", "", ".ssh/id", false}, // the baseline's ~/.bashrc
		{"", ".", "", "dotfiles/gitconfig", true},
		{"", ".", ".", ".ssh/id", true}, // asked for: the whole home directory
	} {
		h := h
		h.Env = []string{"VIRTUAL_ENV=" + filepath.Join(h.Home, tt.venv)}
		h.Dir = filepath.Join(h.Home, tt.dir)
		user := &policy.Policy{}
		if tt.rw != "" {
			user.FS.Rules = []policy.Rule{{Path: filepath.Join(h.Home, tt.rw), Access: policy.Read | policy.Write, Origin: policy.Origin{Source: "--rw"}}}
		}
		layers := []*policy.Policy{policy.Baseline("linux"), user}
		if tt.venv != "" {
			layers = append(layers, python)
		}
		r, err := Policy(policy.Merge(layers...), h)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.access(filepath.Join(h.Home, tt.ask))&policy.Read != 0; got != tt.want {
			t.Errorf("%+v: readable %v", tt, got)
		}
	}
}

// TestGuardLinkedHome checks that a home directory behind a link is recognised by its real path.
func TestGuardLinkedHome(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Mkdirs(&h, t, "real/.ssh", "real/cache")
	link := filepath.Join(h.Home, "home")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	h.Home, h.Dir = link, "/"
	for p, want := range map[string]int{".ssh": 0, "": 0, "cache": 1} {
		if kept, _ := guardOne(h, presetPath(&h, t, policy.Read, p)); len(kept) != want {
			t.Errorf("%q: kept %v", p, kept)
		}
	}
}

// TestSecretPathsFollowVariables checks that a directory that a variable moves has its places of
// secrets at the new place.
func TestSecretPathsFollowVariables(t *testing.T) {
	h := hosttest.Disk(t, "CARGO_HOME=/data/cargo", "XDG_CONFIG_HOME=/data/config")
	g := newGuard(&view{Host: h}, nil)
	for _, want := range []string{"/data/cargo/credentials.toml", "/data/config/gh", h.Home + "/.ssh"} {
		if got := g.secret(want, false); got != want {
			t.Errorf("%s: %q", want, got)
		}
	}
}

// TestSecretsMoved: what a variable names in the home directory is a place of secrets.
func TestSecretsMoved(t *testing.T) {
	h := hosttest.Disk(t)
	h.Env = append(h.Env, "GNUPGHOME="+h.Home+"/keys", "KUBECONFIG="+h.Home+"/k/one:/etc/kube:"+h.Home+"/k/two:rel", "HISTFILE=/dev/null", "NETRC="+h.Home)
	g := newGuard(&view{Host: h}, nil)
	for p, want := range map[string]string{
		h.Home + "/keys/private": h.Home + "/keys", h.Home + "/k/one": h.Home + "/k/one", h.Home + "/k/two": h.Home + "/k/two",
		h.Home + "/k/three": "", "/etc/kube": "", "/dev/null": "", h.Home + "/work": "",
	} {
		if got := g.secret(p, false); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
	}
}

// path returns a Path as Resolve would make it from a preset's rule.
func presetPath(h *host.Host, t *testing.T, access policy.Access, p string) Path {
	t.Helper()
	if !strings.HasPrefix(p, "/") {
		p = filepath.Join(h.Home, p)
	}
	real, st, err := h.RealPath(p)
	if err != nil {
		t.Fatal(err)
	}
	rule := policy.Rule{Path: p, Access: access, Optional: true, Origin: policy.Origin{Source: "preset test"}}
	return Path{Path: real, Access: access, Mode: st.Mode.Type(), ID: st.ID, Rule: rule}
}
