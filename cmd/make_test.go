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

// TestSoakEnds: scripts/soak.sh ends where no attacker can run, and where enough has been held. The attackers are
// this test's.
func TestSoakEnds(t *testing.T) {
	t.Parallel()
	sh := testkit.NeedProgram(t, "bash")
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("scripts/soak.sh", readPage(t, "../scripts/soak.sh"))
	write("internal/track/x", "")
	write("bin/id", "#!/bin/sh\necho 0\n")
	write("bin/unshare", "#!/bin/sh\nwhile case $1 in -*) true ;; *) false ;; esac; do shift; done\nexec \"$@\"\n")
	write("bin/go", "#!/bin/sh\ncp \"${0%/*}/../attackers\" \"$4\"\n") // go test -c -o FILE
	for result, want := range map[string]string{"SKIP": "every batch was skipped", "PASS": "of 30 rounds"} {
		write("attackers", "#!/bin/sh\ncase $2 in\n"+
			"'^TestAttacks$') echo '        --- PASS: TestAttacks/domain/forks (0.00s)' ;;\n"+
			"*) echo '        --- "+result+": TestAttacks/domain/forks (0.00s)' ;;\nesac\n")
		c := exec.Command(sh, filepath.Join(root, "scripts/soak.sh"), "30")
		c.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if (err == nil) != (result == "PASS") || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", result, err, out)
		}
		if err := os.Remove(filepath.Join(root, "soak.tsv")); err != nil {
			t.Error(err)
		}
	}
}

// TestMakeInstallPath: make install says if its directory of programs is not in PATH. The program is this test's.
func TestMakeInstallPath(t *testing.T) {
	t.Parallel()
	makes := testkit.NeedProgram(t, "make")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(readPage(t, "../Makefile")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"zsbx", "man/zsbx.1", "completions/zsbx.bash", "completions/_zsbx", "completions/zsbx.fish"} {
		err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), nil, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	prefix := filepath.Join(dir, "prefix")
	for path, want := range map[string]bool{"": true, ":" + filepath.Join(prefix, "bin"): false} {
		c := exec.Command(makes, "-C", dir, "install", "GO=true", "PREFIX="+prefix)
		c.Env = append(os.Environ(), "MAKEFLAGS=", "PATH="+os.Getenv("PATH")+path)
		out, err := c.CombinedOutput()
		said := strings.Contains(string(out), "\n"+filepath.Join(prefix, "bin")+" is not in PATH\n")
		if err != nil || said != want {
			t.Errorf("PATH with %q: %v, %v\n%s", path, said, err, out)
		}
	}
}
