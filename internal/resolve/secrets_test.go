package resolve

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/policy"
)

// secretFilesOf returns files with keys, tokens and passwords that are known to be in home directories.
func secretFilesOf() []string {
	return []string{
		".ssh/id_ed25519", ".ssh/config", ".gnupg/private-keys-v1.d/x.key", ".netrc", ".git-credentials", ".config/git/credentials",
		".cargo/credentials.toml", ".cargo/credentials", ".npmrc", ".yarnrc.yml", ".yarnrc", ".bunfig.toml", ".pypirc", ".config/pip/pip.conf",
		".pip/pip.conf", ".condarc", ".config/pypoetry/auth.toml", ".config/uv/uv.toml",
		".m2/settings.xml", ".m2/settings-security.xml", ".gradle/gradle.properties", ".gradle/init.d/x.gradle", ".sbt/credentials", ".ivy2/.credentials",
		".gem/credentials", ".bundle/config", ".config/gh/hosts.yml", ".config/hub", ".config/glab-cli/config.yml",
		".docker/config.json", ".kube/config", ".aws/credentials", ".azure/accessTokens.json", ".config/gcloud/credentials.db", ".config/op/config",
		".vault-token", ".terraform.d/credentials.tfrc.json", ".terraformrc", ".password-store/x.gpg", ".local/share/keyrings/login.keyring",
		".config/nix/nix.conf", ".config/containers/auth.json", ".config/fish/fish_variables", ".config/google-chrome/Default/Cookies",
		".mozilla/firefox/x/logins.json", ".bash_history", ".zsh_history", ".python_history", ".local/share/fish/fish_history",
		".local/share/gem/credentials", ".config/mozilla/firefox/x/logins.json", ".config/nushell/history.txt", ".gitcookies", ".dbt/profiles.yml",
		".mcp-auth/x/tokens.json", ".luarocks/upload_config.lua", ".config/rebar3/hex.config", ".pub-cache/credentials.json", ".config/lxc/client.key",
		".config/zsbx/policy.toml", ".local/state/zsbx/sessions/x/record", ".pgpass", ".my.cnf", ".config/rclone/rclone.conf", ".secret", "Documents/x",
	}
}

// homeWithEverything makes a home directory with every directory that any preset names, and all
// token files.
func homeWithEverything(t *testing.T, env ...string) (host.Host, *policy.Policy) {
	h := hosttest.Disk(t, env...)
	all := []*policy.Policy{policy.Baseline("linux")}
	for _, info := range presets.All() {
		p, err := policy.Preset(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p, &policy.Policy{Presets: []policy.Named{{Value: info.Name}}})
		for _, r := range slices.Concat(p.FS.Rules, cmp.Or(p.Linux, &policy.Policy{}).FS.Rules) {
			written := (&view{Host: h}).expanded(r.Path)
			if name, ok := strings.CutPrefix(written, h.Home+"/"); ok && filepath.Ext(written) != ".toml" && filepath.Ext(written) != ".sh" {
				hosttest.Mkdirs(&h, t, name)
			}
		}
	}
	for _, f := range secretFilesOf() {
		hosttest.Write(&h, t, f, "token")
	}
	hosttest.Mkdirs(&h, t, "project")
	h.Dir = filepath.Join(h.Home, "project")
	return h, policy.Merge(all...)
}

// access returns what the resolved rules allow on a canonical path.
func (r *Resolved) access(p string) policy.Access {
	var sum policy.Access
	for i := range r.Paths {
		if host.Within(p, r.Paths[i].Path) {
			sum |= r.Paths[i].Access
		}
	}
	return sum
}

// TestNoTokenReadable switches on all presets at once, in a home directory
// that has everything, with the variables unset and with hostile values.
func TestNoTokenReadable(t *testing.T) {
	h, p := homeWithEverything(t)
	for _, variable := range append(relocations(), "NONE") {
		for _, value := range []string{"", "/", ".", ".ssh", ".config", ".config/gh", ".ssh/../..", ".local", ".local/share"} {
			if (variable == "NONE") != (value == "") {
				continue
			}
			switch value {
			case "", "/":
			default:
				value = h.Home + "/" + value
			}
			h.Env = []string{variable + "=" + value, "PATH=/usr/bin"}
			r, err := Policy(p, h)
			if err != nil {
				t.Fatalf("%s=%s: %v", variable, value, err)
			}
			for _, f := range secretFilesOf() {
				if variable == "GIT_CONFIG_GLOBAL" && strings.HasPrefix(f, ".config") {
					continue // named by the user as git's settings
				}
				if v := r.Allowed(filepath.Join(h.Home, f), policy.Read); v.Allowed {
					t.Errorf("%s=%s: %s", variable, value, v.Reason)
				}
			}
			if a := r.access(h.Dir); a&policy.Write != 0 {
				t.Errorf("%s=%s: the working directory is writable: %v", variable, value, a)
			}
		}
	}
}

// TestPresetsProperty sets several variables at once to anything in a home directory, with some of
// it on PATH.
func TestPresetsProperty(t *testing.T) {
	h, p := homeWithEverything(t)
	places := []string{"/", "/usr", "relative", "$HOME", "$HOME/", "$HOME/..", "$HOME/.ssh", "$HOME/.config", "$HOME/.local/share", "$HOME/.cargo",
		"$HOME/.cache", "$HOME/.m2", "$HOME/.gradle", "$HOME/project", "$HOME/project/x", "$HOME/.npm", "$HOME/go", "$HOME/bin", "$HOME/.docker/x", "/nonexistent:$HOME"}
	for i := range places {
		places[i] = strings.ReplaceAll(places[i], "$HOME", h.Home)
	}
	programs := []string{".cargo/bin", ".local/bin", "go/bin", ".pyenv/shims", ".cache/uv", ".local/share/pnpm", "bin"}
	rapid.Check(t, func(rt *rapid.T) {
		vars := rapid.MapOfN(rapid.SampledFrom(relocations()), rapid.SampledFrom(places), 1, 5).Draw(rt, "variables")
		onPATH := rapid.SliceOfDistinct(rapid.SampledFrom(programs), rapid.ID[string]).Draw(rt, "PATH")
		host := h
		host.Env = []string{"PATH=/usr/bin"}
		for _, d := range onPATH {
			host.Env[0] += ":" + filepath.Join(h.Home, d)
		}
		for name, value := range vars {
			host.Env = append(host.Env, name+"="+value)
		}
		r, err := Policy(p, host)
		if err != nil {
			rt.Fatal(err)
		}
		for _, f := range secretFilesOf() {
			if _, named := vars["GIT_CONFIG_GLOBAL"]; named {
				continue // a file that the user names as git's settings
			}
			if r.access(filepath.Join(h.Home, f)) != 0 {
				rt.Errorf("%s", r.Allowed(filepath.Join(h.Home, f), policy.Read).Reason)
			}
		}
		for _, d := range onPATH {
			if r.access(filepath.Join(h.Home, d, "prog"))&policy.Write != 0 {
				rt.Errorf("%s is on PATH and writable", d)
			}
		}
		for _, closed := range []string{h.Home, h.Dir} {
			if r.access(closed)&policy.Write != 0 {
				rt.Errorf("%s is writable", closed)
			}
		}
	})
}

// relocations are the variables that move presets' directories.
func relocations() []string {
	return []string{"CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOCACHE", "GOMODCACHE", "GOBIN", "GOROOT", "GOENV", "npm_config_cache",
		"NPM_CONFIG_PREFIX", "PNPM_HOME", "NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "PIP_CACHE_DIR", "UV_CACHE_DIR", "GRADLE_USER_HOME", "JAVA_HOME",
		"GEM_HOME", "BUNDLE_PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CCACHE_DIR", "VIRTUAL_ENV", "GIT_CONFIG_GLOBAL", "MISE_DATA_DIR"}
}

// TestNothingOnPATHWritable puts every directory with programs that any preset knows on PATH, and
// checks that with all presets on, nothing in them can be written.
func TestNothingOnPATHWritable(t *testing.T) {
	h, p := homeWithEverything(t)
	dirs := []string{
		".local/bin", "bin", ".cargo/bin", "go/bin", ".npm-global/bin", ".nvm/versions/node/v20/bin", ".volta/bin", ".bun/bin", ".deno/bin",
		".local/share/pnpm", ".pyenv/shims", ".pyenv/bin", ".rbenv/shims", ".rbenv/bin", ".rvm/bin", ".gem/ruby/3.1.0/bin", ".asdf/shims",
		".local/share/mise/shims", ".proto/shims", ".sdkman/candidates/java/current/bin", ".jenv/shims", ".nix-profile/bin", ".bundle/ruby/3.1.0/bin",
		".cache/uv/bin", ".cache/pypoetry/virtualenvs/x/bin", ".m2/wrapper/x/bin", ".npm/_npx/1/node_modules/.bin", ".goenv/shims", "n/bin", "miniconda3/bin",
		".rustup/toolchains/stable/bin", "go/pkg/mod/golang.org/toolchain/bin", ".cache/go-build/bin",
	}
	path := "PATH=/usr/local/bin:/usr/bin"
	for _, d := range dirs {
		hosttest.Write(&h, t, d+"/prog", "")
		path += ":" + filepath.Join(h.Home, d)
	}
	h.Env = []string{path}
	r, err := Policy(p, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if a := r.access(filepath.Join(h.Home, d, "prog")); a&policy.Write != 0 {
			t.Errorf("%s is writable", d)
		}
	}
	// Control: without those on PATH the caches among them are writable.
	h.Env = []string{"PATH=/usr/bin"}
	r, err = Policy(p, h)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{".cache/go-build/bin", "go/pkg/mod/golang.org/toolchain/bin"} {
		if a := r.access(filepath.Join(h.Home, d, "prog")); a&policy.Write == 0 {
			t.Errorf("control: %s is not writable", d)
		}
	}
}

// TestCreate checks which directories are to be made in an empty home directory, and that a
// variable can't move them into a place of secrets.
func TestCreate(t *testing.T) {
	p, err := policy.Preset("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ env, want string }{
		{"NONE=", "~/go/pkg/mod CACHE ~/go/pkg/sumdb ~/.cache/go-build ~/.cache/gopls"},
		{"GOCACHE=~/c", "~/go/pkg/mod CACHE ~/go/pkg/sumdb ~/c ~/.cache/gopls"},
		{"GOPATH=~/.ssh", "CACHE ~/.cache/go-build ~/.cache/gopls"},
	} {
		h := hosttest.Disk(t)
		hosttest.Mkdirs(&h, t, ".ssh")
		h.Env = []string{strings.ReplaceAll(tt.env, "~", h.Home)}
		r, err := Policy(p, h)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, rule := range r.Create {
			got = append(got, strings.Replace(strings.Replace(rule.Path, (&view{Host: h}).projectCache(), "CACHE", 1), h.Home, "~", 1))
		}
		if fmt.Sprint(got) != "["+tt.want+"]" {
			t.Errorf("%s: %v, want %s", tt.env, got, tt.want)
		}
	}
}

// TestBaselineSecrets: a home directory below /opt, and a tool's below /usr, are in what the
// baseline opens. The places of secrets there stay closed, without a message. The controls: other
// files there are open, and so is a place that a user's rule names.
func TestBaselineSecrets(t *testing.T) {
	h := hosttest.Table(map[string]string{
		"/opt/u/.ssh/id": "file", "/opt/u/notes": "file", "/usr/cargo/credentials.toml": "file", "/usr/cargo/config.toml": "file",
		"/opt/conda/.condarc": "file", "/opt/conda/bin": "dir",
	})
	h.Home, h.Env = "/opt/u", []string{"HOME=/opt/u", "PATH=/usr/bin", "CARGO_HOME=/usr/cargo", "CONDA_PREFIX=/opt/conda"}
	for _, tt := range []struct{ asked, path, want string }{
		{"/w", "/opt/u/.ssh/id", "closed"}, {"/w", "/opt/u/notes", "open"},
		{"/w", "/usr/cargo/credentials.toml", "closed"}, {"/w", "/usr/cargo/config.toml", "open"},
		{"/w", "/opt/conda/.condarc", "closed"}, {"/w", "/opt/conda/bin", "open"},
		{"/opt/u/.ssh", "/opt/u/.ssh/id", "open"}, {"/usr/cargo", "/usr/cargo/credentials.toml", "open"},
	} {
		r := mustResolve(t, policy.Merge(policy.Baseline("linux"), rules(policy.Read, tt.asked)), h)
		got := "closed"
		if r.Allowed(tt.path, policy.Read).Allowed {
			got = "open"
		}
		if got != tt.want || r.Spared(true) != "" {
			t.Errorf("%s with %s: %s, want %s; said: %q", tt.path, tt.asked, got, tt.want, r.Spared(true))
		}
	}
}

// TestSparedOwn: a rule for the home directory leaves zsbx's own state closed without a message,
// and only the user's places are proposed.
func TestSparedOwn(t *testing.T) {
	files := map[string]string{"/home/u/.local/state/zsbx/last": "file"}
	for want, more := range map[string]string{"": "/home/u/notes", "test:1:1: ~/.ssh: closed, as secrets may be there; only a rule for exactly that place opens it": "/home/u/.ssh/id"} {
		files[more] = "file"
		r := mustResolve(t, rules(policy.Read|policy.Write, "/home/u"), hosttest.Table(files))
		if got := r.Spared(true); got != want || r.Allowed("/home/u/.local/state/zsbx/last", policy.Read).Allowed {
			t.Errorf("with %s: %q, want %q", more, got, want)
		}
		delete(files, more)
	}
}

// TestUnwiseHomeless: without a home directory nothing is known about tokens there, and no rule is
// unwise because of them. The control: with one, the place of a token is.
func TestUnwiseHomeless(t *testing.T) {
	for _, home := range []string{"/home/u", ""} {
		h := hosttest.Table(map[string]string{"/data": "dir", "/home/u/anaconda3/pip.conf": "file"})
		h.Home = home
		if home == "" {
			h.Env = nil
		}
		r, err := Policy(rules(policy.Read, "/data"), h)
		if err != nil {
			t.Fatal(err)
		}
		unwise := r.Unwise()
		if why := unwise("/data", policy.Read, true); why != "" {
			t.Errorf("home %q: /data: %s", home, why)
		}
		if why := unwise("/home/u/anaconda3/pip.conf", policy.Read, false); (why != "") != (home != "") {
			t.Errorf("home %q: a token: %q", home, why)
		}
	}
}
