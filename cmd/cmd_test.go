package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track"
)

// TestScript runs testdata/script: one script for each topic, whose name begins with the category.
func TestScript(t *testing.T) {
	t.Parallel()
	needLimits(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setupScript,
		Condition:           condition,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"typing": typingCommand},
	})
}

// needLimits skips a test whose commands are not started without Landlock.
func needLimits(t *testing.T) {
	t.Helper()
	if c := enforce.Probe(); runtime.GOOS == "linux" {
		testkit.NeedLandlock(t, c.Landlock, 1, c.LandlockReason)
	}
}

// setupScript gives a script a home directory of its own and short temporary
// paths.
func setupScript(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	e.Setenv("HOME", home)
	e.Setenv("TMPDIR", "/tmp")
	e.Setenv("TERM", "dumb")
	e.Setenv("PATH", testkit.SystemPath(e.Getenv("PATH")))
	e.Setenv("NO_LAYERS", noLayers())
	return setupElsewhere(e)
}

// noLayers returns why zsbx try can't work in the directory for tests, or "". It runs it: only the kernel
// knows. A command that does not start for another reason than a gap is no reason to skip a test.
var noLayers = sync.OnceValue(func() string {
	if runtime.GOOS != "linux" {
		return "layers are for Linux"
	}
	dir, err := os.MkdirTemp("", "zsbx-layers-")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	c := exec.Command("zsbx", "try", "--", "true")
	c.Dir = filepath.Join(dir, "tree")
	if err := os.Mkdir(c.Dir, 0o755); err != nil {
		return err.Error()
	}
	c.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=")
	out, err := c.CombinedOutput()
	_, why, _ := strings.Cut(string(out), "zsbx: error: ")
	why, _, gap := strings.Cut(why, "\nzsbx: hint: --allow-gap try")
	if err == nil || !gap {
		return ""
	}
	return why
})

// setupElsewhere gives a script with an empty file "elsewhere" a directory that is not in /tmp,
// as all its other directories are.
func setupElsewhere(e *testscript.Env) error {
	if _, err := os.Stat(filepath.Join(e.WorkDir, "elsewhere")); err != nil {
		return nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(home, ".zsbx-script-")
	e.Setenv("ELSEWHERE", dir)
	e.Defer(func() { os.RemoveAll(dir) })
	return err
}

// condition knows [root], [exists:FILE], [landlockN], [mounts], [layers], [localhost], [limits] and [sockets]. The
// last means that Unix sockets of programs outside are closed, with --exec too; [localhost] that a
// command without network has its own servers; [layers] that zsbx try works, else $NO_LAYERS says why it
// does not.
func condition(cond string) (bool, error) {
	if file, ok := strings.CutPrefix(cond, "exists:"); ok {
		_, err := os.Stat(file)
		return err == nil, nil
	}
	switch {
	case cond == "root":
		return os.Geteuid() == 0, nil
	case cond == "mounts":
		caps := enforce.Probe()
		enforce.ProbeNamespaces(&caps)
		return testkit.Condition(testkit.UserNS, caps.MountNS)
	case cond == "layers":
		has, err := condition("mounts")
		return has && noLayers() == "", err
	case cond == "localhost":
		caps := enforce.Probe()
		enforce.ProbeNamespaces(&caps)
		return testkit.Condition(testkit.UserNS, caps.NoOwnNet() == "")
	case cond == "sockets":
		caps := enforce.Probe()
		return testkit.Condition(testkit.Seccomp, caps.Landlock >= 9 || caps.Landlock > 0 && caps.SeccompNotify)
	case cond == "limits":
		return track.ProbeLimits(track.Limits{Memory: 1 << 30, Pids: 100, CPU: 1000}) == nil, nil
	case strings.HasPrefix(cond, "landlock"):
		version := int(cond[len("landlock")] - '0')
		has := enforce.Probe().Landlock >= version
		if version > testkit.LandlockABI {
			return has, nil
		}
		return testkit.Condition(testkit.Landlock, has)
	}
	return false, os.ErrInvalid
}

// TestScriptsSayTheirSystem: before anything else, each script says on which systems it runs:
// "[!linux] skip 'why'", "[!darwin] skip 'why'", or "[!linux] [!darwin] skip" for both.
func TestScriptsSayTheirSystem(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.txtar")
	if err != nil || len(files) < 50 {
		t.Fatal(len(files), err)
	}
	says := regexp.MustCompile(`^(\[!linux\] \[!darwin\] skip|\[!(linux|darwin)\] skip '[^']+')$`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "#") {
				continue
			}
			if !says.MatchString(line) {
				t.Errorf("%s: %q does not say on which system the script holds", f, line)
			}
			break
		}
	}
}
