package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestMakeStamps: make build lets the go command name a revision only where it finds that of these sources. In
// what "git worktree" made, and in an archive, it would name that of a repository around them.
func TestMakeStamps(t *testing.T) {
	t.Parallel()
	makes := testkit.NeedProgram(t, "make")
	testkit.NeedProgram(t, "git")
	rules, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	clone := filepath.Join(t.TempDir(), "clone")
	run := func(dir string, argv ...string) string {
		t.Helper()
		c := exec.Command(argv[0], argv[1:]...)
		c.Dir = dir
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "MAKE") {
				c.Env = append(c.Env, v)
			}
		}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
		return string(out)
	}
	write := func(dir string) {
		t.Helper()
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "Makefile"), rules, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(clone)
	run(clone, "git", "init", "-q")
	run(clone, "git", "add", ".")
	run(clone, "git", "-c", "user.name=me", "-c", "user.email=me@example.com", "commit", "-q", "-m", "first")
	run(clone, "git", "worktree", "add", "-q", "worktree")
	write(filepath.Join(clone, "archive"))
	for dir, stamps := range map[string]string{".": "true", "worktree": "false", "archive": "false"} {
		out := run(filepath.Join(clone, dir), makes, "-n", "build")
		if !strings.Contains(out, "-buildvcs="+stamps+" ") {
			t.Errorf("%s: not -buildvcs=%s:\n%s", dir, stamps, out)
		}
	}
}
