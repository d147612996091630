package fork

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestMain can play other programs.
func TestMain(m *testing.M) {
	if script, ok := os.LookupEnv("FORK_TEST_EXEC"); ok {
		execHelper(script)
	}
	if life, ok := os.LookupEnv("FORK_TEST_FLOOD"); ok {
		floodHelper(life)
	}
	if end, ok := os.LookupEnv("FORK_TEST_FLOOD_UNTIL"); ok {
		floodUntil(end)
	}
	os.Exit(m.Run())
}

// execHelper replaces the test binary by sh.
func execHelper(script string) {
	_, inner := domainSteps(&testing.T{})
	c := &Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Steps: inner}
	if os.Getenv("FORK_TEST_FAIL") != "" {
		c.Path = "/no/such/program"
	}
	err := Exec(c)
	// A restricted thread could not signal what is outside its domain.
	fmt.Println(err, syscall.Kill(os.Getppid(), 0))
	os.Exit(125)
}

// becomes starts a process that replaces itself, and waits until it ends.
func becomes(t *testing.T, script string, env ...string) (c *exec.Cmd, out []string) {
	t.Helper()
	domainSteps(t)
	c = exec.Command("/proc/self/exe")
	c.Env = append(append(os.Environ(), "FORK_TEST_EXEC="+script), env...)
	c.Stderr = os.Stderr
	b, _ := c.Output()
	return c, strings.Fields(string(b))
}

func TestExecKeepsThePid(t *testing.T) {
	// The only child is cat itself.
	c, out := becomes(t, "echo $$; cat /proc/$$/task/$$/children; kill -0 $PPID || echo refused; exit 7")
	if code := c.ProcessState.ExitCode(); code != 7 {
		t.Errorf("ended with %d, want 7", code)
	}
	if len(out) != 3 || out[0] != strconv.Itoa(c.Process.Pid) || out[2] != "refused" {
		t.Errorf("process %d wrote %q, want its pid, one child and refused", c.Process.Pid, out)
	}
}

// TestExecFails: a process that could not be replaced is unchanged.
func TestExecFails(t *testing.T) {
	c, out := becomes(t, "true", "FORK_TEST_FAIL=1")
	if got := strings.Join(out, " "); c.ProcessState.ExitCode() != 125 || got != "exec: /no/such/program: no such file or directory <nil>" {
		t.Errorf("%v: %q", c.ProcessState, got)
	}
	if err := Exec(&Command{Path: "/bin/true", Keeper: &Keeper{}}); err == nil {
		t.Error("a process was replaced below a keeper")
	}
}
