//go:build linux || darwin

package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestToolchains runs the real tools, if they are installed, under the default policy with only
// "--rw ." added. Each script has its own home directory, so that caches start cold. The tools
// themselves come from where PATH finds them, also in the user's real home directory.
func TestToolchains(t *testing.T) {
	t.Parallel()
	needLimits(t)
	testscript.Run(t, testscript.Params{
		Dir:       "testdata/toolchains",
		Setup:     toolchainEnv,
		Condition: toolchainCondition,
	})
}

// toolchainEnv gives a script a home directory, and says where the toolchains in the real one
// are.
func toolchainEnv(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return err
	}
	e.Setenv("HOME", home)
	e.Setenv("LANG", "C.UTF-8")
	repo, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	e.Setenv("REPO", repo)
	e.Setenv("NODE_DIR", nodeDir())
	e.Setenv("REAL_GOMODCACHE", goModCache())
	e.Setenv("REAL_GOCACHE", toolDirs()["REAL_GOCACHE"])
	e.Setenv("GOPROXY", "off")
	e.Setenv("GOFLAGS", "-mod=mod")
	e.Setenv("GONOSUMDB", "*")
	e.Setenv("GOTOOLCHAIN", "local")
	e.Setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")
	if os.Getuid() == 0 {
		e.Setenv("UNSHARE", "-m")
	} else {
		e.Setenv("UNSHARE", "-Urm")
	}
	real, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	for name, dir := range map[string]string{
		"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv", "NVM_DIR": ".nvm", "VOLTA_HOME": ".volta",
		"SDKMAN_DIR": ".sdkman", "RBENV_ROOT": ".rbenv", "ASDF_DATA_DIR": ".asdf",
	} {
		dir = filepath.Join(real, dir)
		if v := os.Getenv(name); v != "" {
			dir = v
		}
		if st, err := os.Stat(dir); err == nil && st.IsDir() {
			e.Setenv(name, dir)
		}
	}
	return nil
}

// toolchainCondition answers the scripts' conditions that are not testscript's own.
func toolchainCondition(cond string) (bool, error) {
	switch cond {
	case "root":
		return os.Getuid() == 0, nil
	case "localhost":
		return condition(cond)
	case "gomodcache":
		_, err := os.ReadDir(filepath.Join(goModCache(), "github.com/inconshreveable/mousetrap@v1.1.0"))
		return err == nil, nil
	case "nodeheaders":
		return nodeDir() != "", nil
	case "pythonvenv":
		return exec.Command("python3", "-c", "import venv, ensurepip").Run() == nil, nil
	case "mountns":
		args := []string{"-m", "true"}
		if os.Getuid() != 0 {
			args = []string{"-Urm", "true"}
		}
		return testkit.Condition(testkit.UserNS, exec.Command("unshare", args...).Run() == nil)
	}
	if file, ok := strings.CutPrefix(cond, "exists:"); ok {
		_, err := os.Stat(file)
		return err == nil, nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// nodeDir returns where node-gyp finds the headers of the installed node: its prefix, or Debian's
// separate directory for them; "" for none.
func nodeDir() string {
	out, err := exec.Command("node", "-p", "path.resolve(process.execPath, '../..')").Output()
	if err != nil {
		return ""
	}
	prefix := strings.TrimSpace(string(out))
	for dir, header := range map[string]string{
		prefix:                                  "include/node/node_api.h",
		filepath.Join(prefix, "include/nodejs"): "src/node_api.h",
	} {
		if _, err := os.Stat(filepath.Join(dir, header)); err == nil {
			return dir
		}
	}
	return ""
}

// goModCache returns the module cache of the user who runs the tests.
func goModCache() string {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// TestAwkwardPath works in a directory whose path has 200 characters, with
// spaces, quotes, wildcards and letters of several scripts.
func TestAwkwardPath(t *testing.T) {
	t.Parallel()
	needLimits(t)
	dir := filepath.Join(t.TempDir(), "a b", `it's "quoted"`, `back\slash`, "$HOME * [x] ?", "žluťoučký kůň", "日本語")
	dir = filepath.Join(dir, strings.Repeat("x", max(1, 200-len(dir)-1)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(filepath.Dir(dir), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	const script = `printf %s "$1" > 'a "file".sh' && cp 'a "file".sh' run.sh && chmod +x run.sh && ./run.sh && cat ../secret`
	run := func(name string, args ...string) (string, error) {
		c := exec.Command(name, append(args, "sh", "-c", script, "sh", "echo ran here")...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	refused := regexp.MustCompile("Permission denied|Operation not permitted")
	rule := func(p string) string { return strings.ReplaceAll(p, "$", "$$") }
	for _, args := range [][]string{
		{"run", "--rw", ".", "--"},
		{"run", "--rw", rule(dir), "--"},
		{"run", "--rw", rule(dir), "-C", dir, "--"},
	} {
		out, err := run("zsbx", args...)
		if err == nil || !strings.Contains(out, "ran here") || strings.HasSuffix(out, "secret") || !refused.MatchString(out) {
			t.Errorf("zsbx %q: %v\n%s", args, err, out)
		}
	}
	// The controls: the secret is read without zsbx, and if it is allowed.
	if out, err := run("env"); err != nil || !strings.HasSuffix(out, "ran here\nsecret") {
		t.Errorf("without zsbx: %v\n%s", err, out)
	}
	if out, err := run("zsbx", "run", "--rw", rule(dir), "--ro", rule(secret), "--"); err != nil || !strings.HasSuffix(out, "secret") {
		t.Errorf("allowed: %v\n%s", err, out)
	}
}
