package compose_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// newHost returns this machine, with a home directory and a project below it.
func newHost(t *testing.T) *host.Host {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, "project", "main.go"), "")
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	h, err := host.HostIn(filepath.Join(home, "project"))
	if err != nil {
		t.Fatal(err)
	}
	return &h
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDefault: without a rule for files the working directory can be read and executed, and written
// if the flags ask for a layer. What a policy file asks for opens nothing.
func TestDefault(t *testing.T) {
	h := newHost(t)
	read := policy.Read | policy.Exec
	try := policy.FS{Writes: policy.Named{Value: "try"}}
	other := try
	other.Rules = []policy.Rule{{Path: "main.go", Access: policy.Read}}
	write(t, filepath.Join(h.Home, ".config/zsbx/policy.toml"), "[fs]\nwrites = \"try\"\n")
	for _, tt := range []struct {
		asked policy.FS
		want  policy.Access // 0 for no default
	}{{policy.FS{}, read}, {try, read | policy.Write}, {other, 0}} {
		c, err := compose.Compose(h, &compose.Sources{Asked: &policy.Policy{FS: tt.asked}})
		if err != nil {
			t.Fatal(err)
		}
		var got policy.Access
		for _, r := range c.Policy.FS.Rules {
			if r.Path == "." && r.Origin.Source == "default" {
				got |= r.Access
			}
		}
		if got != tt.want || c.Policy.FS.Writes.Value != "try" {
			t.Errorf("%+v: %s, and writes go to %+v", tt.asked, got, c.Policy.FS.Writes)
		}
	}
}

// TestNoHome: without a home directory there is no policy of the user, and none is looked for in
// the working directory, where anybody may have put it. The control: with XDG_CONFIG_HOME it
// counts.
func TestNoHome(t *testing.T) {
	h := newHost(t)
	file := filepath.Join(h.Dir, "zsbx", "policy.toml")
	write(t, file, "[fs]\nrw = [\"/\"]\n")
	t.Chdir(h.Dir)
	h.Env = []string{"XDG_CONFIG_HOME=" + h.Dir}
	for _, want := range [][]string{{file}, nil} {
		c, err := compose.Compose(h, &compose.Sources{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.Files, want) {
			t.Errorf("in use are %q, want %q", c.Files, want)
		}
		h.Env, h.Home = nil, ""
	}
}

// TestTrust: a project's policy that asks for something counts once it is trusted,
// with that content; one that only takes away counts as it is.
func TestTrust(t *testing.T) {
	h := newHost(t)
	file := filepath.Join(h.Dir, resolve.ProjectFile)
	used := func() error {
		c, err := compose.Compose(h, &compose.Sources{})
		if err == nil && !slices.Contains(c.Files, file) {
			err = errors.New("it is not in use")
		}
		return err
	}
	var untrusted *policy.UntrustedError
	write(t, file, "[fs]\nrw = [\".\"]\n")
	if err := used(); !errors.As(err, &untrusted) || untrusted.Changed || untrusted.File != file || len(untrusted.Asks) != 1 {
		t.Fatalf("untrusted: %v", err)
	}
	all, err := compose.Projects(h)
	if err != nil || len(all) != 1 || all[0].Trusted() {
		t.Fatalf("%v, %v", all, err)
	}
	write(t, file, "[fs]\nrw = [\"..\"]\n") // replaced after it was read
	if err := all[0].Trust(); err != nil {
		t.Fatal(err)
	}
	if err := used(); !errors.As(err, &untrusted) || !untrusted.Changed {
		t.Errorf("exchanged meanwhile: %v", err)
	}
	write(t, file, "[fs]\nrw = [\".\"]\n")
	if err := used(); err != nil || !all[0].Trusted() {
		t.Errorf("trusted: %v", err)
	}
	write(t, file, "[fs]\ndeny = [\".env\"]\n")
	if err := used(); err != nil {
		t.Errorf("takes away: %v", err)
	}
}

// TestTrustByLink: a project whose policy is a link to another project's, or is reached through
// one, does not have that project's trust. The control: the other one still has it.
func TestTrustByLink(t *testing.T) {
	h := newHost(t)
	trusted, stranger := *h, *h
	write(t, filepath.Join(h.Dir, resolve.ProjectFile), "[fs]\nro = [\"~/.aws\"]\n")
	all, err := compose.Projects(h)
	if err != nil || len(all) != 1 || all[0].Trust() != nil {
		t.Fatal(all, err)
	}
	stranger.Dir = filepath.Join(h.Home, "stranger")
	if err := os.Mkdir(stranger.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../project/"+resolve.ProjectFile, filepath.Join(stranger.Dir, resolve.ProjectFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := compose.Compose(&trusted, &compose.Sources{}); err != nil {
		t.Errorf("control: %v", err)
	}
	var untrusted *policy.UntrustedError
	if _, err := compose.Compose(&stranger, &compose.Sources{}); !errors.As(err, &untrusted) {
		t.Errorf("by a link: %v", err)
	}
	all, err = compose.Projects(&stranger)
	if err != nil || len(all) != 1 || all[0].Trust() != nil {
		t.Fatal(all, err)
	}
	if _, err := compose.Compose(&stranger, &compose.Sources{}); err != nil {
		t.Errorf("trusted there, too: %v", err)
	}
}

// TestCheckVariables: zsbx's own files are not made through a link in the working
// directory, which a command may have put there.
func TestCheckVariables(t *testing.T) {
	h := newHost(t)
	link := filepath.Join(h.Dir, "state")
	if err := os.Symlink(h.Home, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env  string
		good bool
	}{{"XDG_STATE_HOME=" + link, false}, {"TMPDIR=" + link + "/x", false}, {"TMPDIR=" + h.Dir, true}, {"XDG_STATE_HOME=state", true}, {"OTHER=" + link, true}} {
		h.Env = []string{c.env}
		if err := compose.CheckVariables(h); (err == nil) != c.good {
			t.Errorf("%s: %v", c.env, err)
		}
	}
}
