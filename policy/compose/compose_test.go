package compose_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
)

// TestCompose: the user's policy and the project's are in it, and the presets that fit the command.
// A project's policy that asks for something is refused until the user trusts it.
func TestCompose(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		file := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	user := write(".config/zsbx/policy.toml", "fs.deny = ['keys']\n")
	project := write("project/.zsbx.toml", "fs.deny = ['secret']\n")
	dir := filepath.Dir(project)
	sources := &compose.Sources{Dir: dir, Args: []string{"cargo", "build"}}

	c, err := compose.Compose(sources)
	if err != nil || !slices.Equal(c.Files, []string{user, project}) {
		t.Fatalf("%+v, %v", c, err)
	}
	if !slices.ContainsFunc(c.Policy.Presets, func(n policy.Named) bool { return n.Value == "rust" }) {
		t.Errorf("presets %v", c.Policy.Presets)
	}

	elsewhere := write("other/zsbx/policy.toml", "fs.deny = ['x']\n")
	sources.Env = []string{"XDG_CONFIG_HOME=" + filepath.Join(home, "other")}
	c, err = compose.Compose(sources)
	if err != nil || !slices.Equal(c.Files, []string{elsewhere, project}) {
		t.Errorf("with another environment: %+v, %v", c, err)
	}

	write("project/.zsbx.toml", "fs.rw = ['.']\n")
	c, err = compose.Compose(sources)
	var untrusted *policy.UntrustedError
	if !errors.As(err, &untrusted) || untrusted.File != project || c == nil || slices.Contains(c.Files, project) {
		t.Errorf("a policy that asks for something: %+v, %v", c, err)
	}

	sources.Dir = filepath.Join(dir, "none")
	if c, err := compose.Compose(sources); err == nil || c != nil {
		t.Errorf("a directory that does not exist: %+v, %v", c, err)
	}
}

func ExampleCompose() {
	asked := &policy.Policy{}
	asked.FS.Rules = []policy.Rule{{Path: ".", Access: policy.Read | policy.Write, Origin: policy.Origin{Source: "settings"}}}
	c, err := compose.Compose(&compose.Sources{
		Asked:      asked,
		Args:       []string{"true"},
		NoBaseline: true, // without what this machine has
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(c.Files), c.Policy.FS.Rules[0].Path)
	// Output: 0 .
}
