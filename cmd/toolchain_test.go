//go:build linux || darwin

package cmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestToolchains runs the real tools, where they are installed, under the
// default policy with nothing but "--rw ." added. Each script has a home
// directory of its own, so that caches start cold; the tools themselves come
// from where PATH finds them, the user's own home directory included.
func TestToolchains(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:       "testdata/toolchains",
		Setup:     toolchainEnv,
		Condition: toolchainCondition,
	})
}

// toolchainEnv gives a script a home directory and says where the toolchains
// of the real one are.
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
	e.Setenv("NODE_PREFIX", nodePrefix())
	e.Setenv("REAL_GOMODCACHE", goModCache())
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

// toolchainCondition answers the conditions of the scripts that are not
// testscript's own.
func toolchainCondition(cond string) (bool, error) {
	switch cond {
	case "root":
		return os.Getuid() == 0, nil
	case "gomodcache":
		_, err := os.ReadDir(filepath.Join(goModCache(), "github.com/inconshreveable/mousetrap@v1.1.0"))
		return err == nil, nil
	case "nodeheaders":
		_, err := os.Stat(filepath.Join(nodePrefix(), "include/node/node_api.h"))
		return err == nil, nil
	case "pythonvenv":
		return exec.Command("python3", "-c", "import venv, ensurepip").Run() == nil, nil
	case "mountns":
		args := []string{"-m", "true"}
		if os.Getuid() != 0 {
			args = []string{"-Urm", "true"}
		}
		return exec.Command("unshare", args...).Run() == nil, nil
	}
	if file, ok := strings.CutPrefix(cond, "exists:"); ok {
		_, err := os.Stat(file)
		return err == nil, nil
	}
	return false, fmt.Errorf("unknown condition %q", cond)
}

// nodePrefix is the prefix of the installed node: its headers lie in
// include/node below it.
func nodePrefix() string {
	out, err := exec.Command("node", "-p", "path.resolve(process.execPath, '../..')").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// goModCache is the module cache of whoever runs the tests.
func goModCache() string {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
