package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestEmbed builds the program of docs/embed.md and runs it. It confines the command, which could
// do these acts without it. It passes on the exit status, and nothing that the command left
// running is there at the end.
func TestEmbed(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	embed := filepath.Join(t.TempDir(), "embed")
	page, err := os.ReadFile("../../docs/embed.md")
	if err != nil {
		t.Fatal(err)
	}
	if program, err := os.ReadFile("testdata/embed/main.go"); err != nil || !strings.Contains(string(page), "```go\n"+string(program)+"```\n") {
		t.Errorf("docs/embed.md shows another program: %v", err)
	}
	if out, err := exec.Command("go", "build", "-o", embed, "./testdata/embed").CombinedOutput(); err != nil {
		if os.Getuid() != 0 {
			t.Skipf("go build: %v: %s", err, out) // an ordinary user may have no module cache; as root the test runs
		}
		t.Fatalf("go build: %v: %s", err, out)
	}
	_ = place(t)
	outside := filepath.Join(t.TempDir(), "outside")
	run := func(program, script string) (status int, out string) {
		args := []string{"sh", "-c", script}
		if program != "" {
			args = append([]string{program}, args...)
		}
		cmd := exec.Command(args[0], args[1:]...)
		var said bytes.Buffer
		cmd.Stdout = &said
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), strings.TrimSpace(said.String())
	}
	write := "echo x >" + outside
	if st, _ := run("", write); st != 0 {
		t.Fatalf("control: status %d", st)
	}
	if err := os.Remove(outside); err != nil {
		t.Fatal(err)
	}
	if st, _ := run(embed, write); st == 0 {
		t.Error("a file outside was written")
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("a file outside is there")
	}
	if st, out := run(embed, "echo x >inside && cat inside; exit 7"); st != 7 || out != "x" {
		t.Errorf("status %d, %q", st, out)
	}
	if st, _ := run(embed, "kill -TERM $$"); st != 128+int(syscall.SIGTERM) {
		t.Errorf("ended by a signal: status %d", st)
	}
	st, out := run(embed, "setsid sleep 1000 >/dev/null 2>&1 & echo $!")
	if pid, err := strconv.Atoi(out); err != nil || st != 0 || !isGone(pid) {
		t.Errorf("left running: status %d, %q", st, out)
	}
	noSessions(t)
}
