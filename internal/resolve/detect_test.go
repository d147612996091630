package resolve

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/host/hosttest"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/policy"
)

func TestDetect(t *testing.T) {
	h := hosttest.Disk(t)
	h.Env = []string{"PATH=" + h.Home + "/.local/bin:" + h.Home + "/.cargo/bin:relative:" + h.Home + "/.pyenv/shims:/usr/bin"}
	hosttest.Write(&h, t, ".local/bin/mytool", "")
	hosttest.Write(&h, t, ".pyenv/shims/black", "")
	hosttest.Mkdirs(&h, t, ".cargo/bin/subdir", "plain/deep", "repo/.git", "repo/web/src", "repo/empty", "mono/.git")
	hosttest.Write(&h, t, "mono/api/go.mod", "")
	hosttest.Write(&h, t, "mono/.hidden/Cargo.toml", "")
	hosttest.Write(&h, t, "hooks/.pre-commit-config.yaml", "")
	hosttest.Write(&h, t, "mono/deep/er/pom.xml", "")
	hosttest.Write(&h, t, "repo/Cargo.toml", "")
	hosttest.Write(&h, t, "repo/web/package.json", "")
	hosttest.Write(&h, t, "plain/go.mod", "")

	for _, tt := range []struct {
		dir  string
		argv string
		want string
	}{
		{"", "true", ""},
		{"", "", ""},
		{"", "cargo build", "rust"},
		{"", "/usr/bin/cargo-clippy", "rust"},
		{"", "cargoship", ""},
		{"", "python3.12 x.py", "python"},
		{"", "env A=b CC=gcc go test", "go"},
		{"", "env -i go", ""},
		{"", "env", ""},
		{"", "npx", "node"},
		{"", "ansible-playbook site.yml", "state"},
		{"", "cpanm -L local .", "state"},
		{"", "mytool", "local"},
		{"", "black .", "python"},
		{"", "subdir", ""},
		{"plain", "make", "cc go"},
		{"plain/deep", "true", ""},        // no repository: only the directory itself counts
		{"repo", "true", "git node rust"}, // what is directly below counts, too
		{"mono", "true", "git go"},
		{"hooks", "git commit", "git python"},
		{"repo/web/src", "true", "git node rust"},
		{"repo/empty", "npm test", "git node rust"},
	} {
		h := h
		h.Dir = filepath.Join(h.Home, tt.dir)
		var got []string
		for _, n := range Detect(h, strings.Fields(tt.argv), false) {
			if strings.HasSuffix(n.Value, presets.ToolsOnly) {
				continue // what is on PATH is for the next test
			}
			got = append(got, n.Value)
			if !strings.HasPrefix(n.Origin.Source, "detected by ") {
				t.Errorf("origin %v", n.Origin)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("Detect(%q in %q) = %v, want %q", tt.argv, tt.dir, got, tt.want)
		}
	}
}

// TestDetectTools checks that commands can run other toolchains on PATH, and that nothing of these
// is writable.
func TestDetectTools(t *testing.T) {
	h := hosttest.Disk(t)
	ccache := t.TempDir()
	if err := os.WriteFile(ccache+"/ccache", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	h.Env = []string{"PATH=" + ccache + ":" + h.Home + "/.pyenv/shims:" + h.Home + "/.nvm/versions/node/v20/bin:" + h.Home + "/.cargo/bin:/usr/bin"}
	var got []string
	for _, n := range Detect(h, []string{"cargo"}, true) {
		got = append(got, n.Value)
		p, err := policy.Preset(n.Value)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.FS.Rules {
			if strings.HasSuffix(n.Value, presets.ToolsOnly) && r.Access&policy.Write != 0 {
				t.Errorf("%s: %s is writable", n.Value, r.Path)
			}
		}
	}
	if strings.Join(got, " ") != "ccache node:tools python:tools rust" {
		t.Errorf("got %v", got)
	}
	h.Env = []string{"PATH=/run/fnm_multishells/1_2/bin:/usr/bin", "FNM_MULTISHELL_PATH=/run/fnm_multishells/1_2"}
	if got := Detect(h, []string{"make"}, false); !slices.ContainsFunc(got, func(n policy.Named) bool { return n.Value == "node:tools" }) {
		t.Errorf("fnm's link on PATH: %v", got)
	}
}

// TestDetectEnvironments: a virtual environment outside the project is detected by its variable, or
// by its file if it is on PATH.
func TestDetectEnvironments(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Write(&h, t, "envs/one/pyvenv.cfg", "")
	hosttest.Mkdirs(&h, t, "envs/one/bin", "envs/two/bin", "project")
	h.Dir = h.Home + "/project"
	one, two := h.Home+"/envs/one", h.Home+"/envs/two"
	for _, tt := range []struct{ env, open string }{
		{"VIRTUAL_ENV=" + one, one},
		{"CONDA_PREFIX=" + two, two},
		{"PATH=" + one + "/bin:/usr/bin", one},
		{"PATH=" + two + "/bin:/usr/bin", ""},
		{"VIRTUAL_ENV=relative", ""},
	} {
		h := h
		h.Env = []string{tt.env}
		found := Detect(h, []string{"make"}, false)
		at := slices.IndexFunc(found, func(n policy.Named) bool { return n.Value == "python:tools" })
		if (at >= 0) != (tt.open != "") {
			t.Errorf("%s: %v", tt.env, found)
		}
		if at < 0 {
			continue
		}
		p, err := policy.Preset("python:tools")
		if err != nil {
			t.Fatal(err)
		}
		r, err := Policy(p, h)
		if err != nil {
			t.Fatal(err)
		}
		bin := tt.open + "/bin"
		if !r.Allowed(bin, policy.Read|policy.Exec).Allowed || r.Allowed(bin, policy.Write).Allowed {
			t.Errorf("%s: %v", tt.env, r.Paths)
		}
	}
}

// TestClosedPath: only what is not open as it is written is looked at.
func TestClosedPath(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Write(&h, t, "t/sed", "")
	if err := os.Chmod(h.Home+"/t/sed", 0o755); err != nil {
		t.Fatal(err)
	}
	h.Env = []string{"PATH=" + h.Home + "/t:/usr/local/bin:/usr/bin:relative:" + h.Home + "/none:" + h.Home + "/t/"}
	r, err := Policy(policy.Merge(policy.Baseline("linux")), h)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.ClosedPath(); !slices.Equal(got, []string{h.Home + "/t"}) {
		t.Errorf("%q", got)
	}
	h.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/opt/x/bin"}
	r, err = Policy(policy.Merge(policy.Baseline("linux")), h)
	if err != nil {
		t.Fatal(err)
	}
	r.host.Lstat = func(p string) (host.Stat, error) { t.Errorf("looked at %s", p); return host.Stat{}, os.ErrNotExist }
	r.host.ReadDir = func(p string, n int) ([]fs.DirEntry, error) { t.Errorf("read %s", p); return nil, nil }
	if got := r.ClosedPath(); got != nil {
		t.Errorf("%q", got)
	}
}

// TestDetectLooksOnly checks that a hostile working directory can't make detection read a file:
// FIFOs and devices are not touched.
func TestDetectLooksOnly(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Write(&h, t, "Cargo.toml", "")
	h.ReadFile = func(p string) ([]byte, error) { t.Errorf("read %s", p); return nil, os.ErrNotExist }
	h.ReadDir = nil
	if got := Detect(h, []string{"true"}, true); !slices.ContainsFunc(got, func(n policy.Named) bool { return n.Value == "rust" }) {
		t.Errorf("got %v", got)
	}
}

// TestDetectBound checks that a large tree does not make a start slow.
func TestDetectBound(t *testing.T) {
	h := hosttest.Disk(t)
	hosttest.Mkdirs(&h, t, ".git")
	for i := range 100 {
		hosttest.Mkdirs(&h, t, fmt.Sprintf("d%d", i))
	}
	read, asked := h.ReadDir, 0
	h.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
		if n < 0 {
			t.Errorf("all of %s", p)
		}
		asked += n
		return read(p, n)
	}
	Detect(h, []string{"true"}, true)
	if asked > host.MaxListed+1+maxBelow*maxInBelow {
		t.Errorf("%d entries", asked)
	}
}

func BenchmarkDetect(b *testing.B) {
	h := host.Host{Dir: "/usr/share/doc", Home: "/root", Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
	h.Lstat = func(p string) (host.Stat, error) {
		fi, err := os.Lstat(p)
		if err != nil {
			return host.Stat{}, err
		}
		return host.Stat{Mode: fi.Mode()}, nil
	}
	for b.Loop() {
		Detect(h, []string{"true"}, true)
	}
}
