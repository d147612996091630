package resolve

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/tables"
	"github.com/zsbx/zsbx/policy"
)

// treeSecrets are files with tokens in directories that presets open for the
// programs in them, each with a neighbour that stays open.
func treeSecrets() map[string]string {
	return map[string]string{
		".nvm/versions/node/v22.1.0/etc/npmrc":                              ".nvm/versions/node/v22.1.0/etc/other",
		".local/share/fnm/node-versions/v22.1.0/installation/etc/npmrc":     ".local/share/fnm/node-versions/v22.1.0/installation/bin/node",
		".volta/tools/image/node/22.1.0/etc/npmrc":                          ".volta/tools/image/node/22.1.0/bin/node",
		".asdf/installs/nodejs/22.1.0/etc/npmrc":                            ".asdf/installs/nodejs/22.1.0/bin/node",
		".local/share/mise/installs/node/22.1.0/etc/npmrc":                  ".local/share/mise/installs/node/22.1.0/bin/node",
		".proto/tools/node/22.1.0/etc/npmrc":                                ".proto/tools/node/22.1.0/bin/node",
		"miniconda3/.condarc":                                               "miniconda3/bin/python",
		"anaconda3/.condarc":                                                "anaconda3/bin/python",
		"miniforge3/.condarc":                                               "miniforge3/bin/python",
		"miniconda3/envs/x/.condarc":                                        "miniconda3/envs/x/bin/python",
		"anaconda3/pip.conf":                                                "anaconda3/bin/python",
		"miniforge3/envs/x/pip.conf":                                        "miniforge3/envs/x/bin/python",
		"miniforge3/condarc":                                                "miniforge3/etc/profile.d/conda.sh",
		"anaconda3/condarc.d/channels.yml":                                  "anaconda3/bin/conda",
		".pyenv/versions/miniconda3-latest/.condarc":                        ".pyenv/versions/miniconda3-latest/bin/conda",
		".dotnet/corefx/cryptography/x509stores/my/0123456789ABCDEF.pfx":    ".dotnet/sdk/8.0.100/dotnet.dll",
		".pyenv/versions/3.12.1/pip.conf":                                   ".pyenv/versions/3.12.1/bin/python",
		".local/share/uv/python/cpython-3.12/pip.conf":                      ".local/share/uv/python/cpython-3.12/bin/python",
		".asdf/installs/python/3.12.1/pip.conf":                             ".asdf/installs/python/3.12.1/bin/python",
		".local/share/mise/installs/python/3.12.1/pip.conf":                 ".local/share/mise/installs/python/3.12.1/bin/python",
		".cache/pypoetry/virtualenvs/x/pip.conf":                            ".cache/pypoetry/virtualenvs/x/bin/python",
		".virtualenvs/x/pip.conf":                                           ".virtualenvs/x/bin/python",
		".local/share/uv/tools/ruff/uv-receipt.toml":                        ".local/share/uv/tools/ruff/bin/ruff",
		".local/share/pipx/venvs/black/pipx_metadata.json":                  ".local/share/pipx/venvs/black/bin/black",
		".sbt/1.0/plugins/credentials.sbt":                                  ".sbt/1.0/plugins/plugins.sbt",
		".gradle/daemon/8.5/registry.bin":                                   ".gradle/caches/x",
		".sbt/repositories":                                                 ".m2/toolchains.xml",
		".m2/mvnd/registry/1.0/registry.bin":                                ".m2/repository/x",
		".config/mise/conf.d/env.toml":                                      ".config/mise/config.toml",
		".npm/_npx/0123456789abcdef/node_modules/cowsay/node_modules/npmrc": ".npm/_cacache/x",
	}
}

// TestSecretsInTrees checks that tokens in directories that presets open are closed, and that the
// programs beside them are not.
func TestSecretsInTrees(t *testing.T) {
	h := hosttest.Disk(t)
	all := []*policy.Policy{policy.Baseline("linux")}
	for _, info := range presets.All() {
		p, err := policy.Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for secret, neighbour := range treeSecrets() {
		hosttest.Write(&h, t, secret, "token")
		hosttest.Write(&h, t, neighbour, "")
	}
	hosttest.Mkdirs(&h, t, "project")
	h.Dir = filepath.Join(h.Home, "project")
	r, err := Policy(policy.Merge(all...), h)
	if err != nil {
		t.Fatal(err)
	}
	for secret, neighbour := range treeSecrets() {
		if v := r.Allowed(filepath.Join(h.Home, secret), policy.Read); v.Allowed {
			t.Errorf("%s: %s", secret, v.Reason)
		}
		if v := r.Allowed(filepath.Join(h.Home, neighbour), policy.Read); !v.Allowed {
			t.Errorf("control: %s: %s", neighbour, v.Reason)
		}
	}
	// Control: a user who opens one, or the directory, has it.
	for _, open := range []string{".nvm", ".nvm/versions/node/v22.1.0/etc/npmrc"} {
		user := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: "~/" + open, Access: policy.Read, Origin: policy.Origin{Source: "--ro"}}}}}
		r, err := Policy(policy.Merge(append(all, user)...), h)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Allowed(filepath.Join(h.Home, ".nvm/versions/node/v22.1.0/etc/npmrc"), policy.Read); !v.Allowed {
			t.Errorf("control: --ro ~/%s: %s", open, v.Reason)
		}
	}
}

// TestMacSecretsInTrees is TestSecretsInTrees for what is elsewhere on a Mac.
func TestMacSecretsInTrees(t *testing.T) {
	h := hosttest.Disk(t)
	h.OS = "macos"
	all := []*policy.Policy{policy.Baseline("macos")}
	for _, name := range []string{"node", "python"} {
		p, err := policy.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	secrets := map[string]string{
		"Library/Application Support/fnm/node-versions/v22/installation/etc/npmrc": "Library/Application Support/fnm/node-versions/v22/installation/bin/node",
		"Library/Application Support/pipx/venvs/black/pipx_metadata.json":          "Library/Application Support/pipx/venvs/black/bin/black",
		".local/pipx/venvs/black/pipx_metadata.json":                               ".local/pipx/venvs/black/bin/black",
	}
	for secret, neighbour := range secrets {
		hosttest.Write(&h, t, secret, "token")
		hosttest.Write(&h, t, neighbour, "")
	}
	hosttest.Mkdirs(&h, t, "project")
	h.Dir = filepath.Join(h.Home, "project")
	r := mustResolve(t, policy.Merge(all...), h)
	for secret, neighbour := range secrets {
		if v := r.Allowed(filepath.Join(h.Home, secret), policy.Read); v.Allowed {
			t.Errorf("%s: %s", secret, v.Reason)
		}
		if v := r.Allowed(filepath.Join(h.Home, neighbour), policy.Read); !v.Allowed {
			t.Errorf("control: %s: %s", neighbour, v.Reason)
		}
	}
}

// TestSecretsHitNoPreset checks that no place of secrets closes what a preset or the baseline
// opens, with the variables unset.
func TestSecretsHitNoPreset(t *testing.T) {
	h, p := homeWithEverything(t)
	h.Env = []string{"PATH=/usr/bin"}
	r, err := Policy(p, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Skipped {
		if strings.Contains(s.Reason, "a preset never opens") {
			t.Errorf("%s: %s", s.Rule.Path, s.Reason)
		}
	}
}

// TestSecretTable checks the table: its names occur once for each base, and the look-up finds what
// is in, at and above each.
func TestSecretTable(t *testing.T) {
	seen := make(map[string]bool)
	for _, g := range tables.Secrets {
		if g.Name == secretTrees {
			continue
		}
		if !slices.IsSorted(g.Entries) || len(g.Entries) == 0 {
			t.Errorf("%s, %s: not sorted", g.Name, g.Note)
		}
		for _, n := range g.Entries {
			if seen[g.Note+"/"+n] || strings.HasPrefix(n, "/") || strings.HasSuffix(n, "/") {
				t.Errorf("%s/%s", g.Note, n)
			}
			seen[g.Note+"/"+n] = true
		}
	}
	g := guard{secrets: []secretPlace{{"/h", []string{".a", ".a-b", "x/y"}, false}, {"/h/x", []string{"z"}, false}, {"/h", []string{".agent"}, true}}}
	for p, want := range map[string]string{
		"/h/.a": "/h/.a", "/h/.a/z": "/h/.a", "/h": "/h/.a", "/h/x": "/h/x/y", "/h/x/y/z/w": "/h/x/y", "/h/.a-": "", "/h/x/yy": "", "/h/xx": "", "/g": "", "/h/x/z": "/h/x/z", "/": "/h/.a", "/h/.a-b/c": "/h/.a-b", "/h/.agent/x": "/h/.agent",
	} {
		if got := g.secret(p, false); got != want {
			t.Errorf("%s: %q, want %q", p, got, want)
		}
		if got := g.secret(p, true); p == "/h/.agent/x" && got != "" || p != "/h/.agent/x" && got != want {
			t.Errorf("%s for an agent: %q", p, got)
		}
	}
}

// TestSecretsInClosedTrees: a directory with files with tokens that can't be listed is closed as a
// whole, and no rule is proposed for it.
func TestSecretsInClosedTrees(t *testing.T) {
	h := hosttest.Disk(t)
	node, err := policy.Preset("node")
	if err != nil {
		t.Fatal(err)
	}
	const secret = ".nvm/versions/node/v22.1.0/etc/npmrc"
	hosttest.Write(&h, t, secret, "token")
	hosttest.Write(&h, t, ".nvm/versions/node/v22.1.0/etc/other", "")
	hosttest.Mkdirs(&h, t, "project")
	h.Dir = filepath.Join(h.Home, "project")
	readDir := h.ReadDir
	var failure error
	h.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
		if failure != nil && strings.HasSuffix(p, "/.nvm/versions/node") {
			return nil, failure
		}
		return readDir(p, n)
	}
	for _, failure = range []error{nil, syscall.EACCES, syscall.EIO, syscall.ELOOP} {
		r, err := Policy(policy.Merge(policy.Baseline("linux"), node), h)
		if err != nil {
			t.Fatal(err)
		}
		if v := r.Allowed(h.Home+"/"+secret, policy.Read); v.Allowed {
			t.Errorf("%v: %s is open", failure, secret)
		}
		other := h.Home + "/.nvm/versions/node/v22.1.0/etc/other"
		if v := r.Allowed(other, policy.Read); v.Allowed != (failure == nil) {
			t.Errorf("%v: %s: %v", failure, other, v.Allowed)
		}
		if why := r.Unwise()(h.Home+"/"+secret, policy.Read, false); why == "" {
			t.Errorf("%v: a rule for %s is proposed", failure, secret)
		}
	}
}
