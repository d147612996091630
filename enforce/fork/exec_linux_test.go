package fork

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain plays other programs when it is told to.
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

// execHelper replaces the test binary by sh below a watcher.
func execHelper(script string) {
	t := &testing.T{}
	outer, inner := domainSteps(t)
	state, err := os.Create(os.Getenv("FORK_TEST_STATE"))
	if err == nil {
		err = Exec(&Command{
			Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Steps: inner,
			Keeper: &Keeper{Domain: true, Steps: outer, State: state, Keep: os.Getenv("FORK_TEST_KEEP") != ""},
			Meanwhile: func(p *Process) {
				fmt.Println("keeper", p.KeeperPid, "pid", p.Pid)
			},
		})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(125)
}

func startExec(t *testing.T, keep, script string) (c *exec.Cmd, state string, out func() []string) {
	t.Helper()
	domainSteps(t)
	dir := t.TempDir()
	name := filepath.Join(dir, "out")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	state = filepath.Join(dir, "state")
	c = exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), "FORK_TEST_EXEC="+script, "FORK_TEST_STATE="+state, "FORK_TEST_KEEP="+keep)
	c.Stdout, c.Stderr = f, os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c, state, func() []string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(b))
	}
}

// waitPhase polls the state file.
func waitPhase(t *testing.T, name string, want Phase) KeeperState {
	t.Helper()
	var st KeeperState
	for range 200 {
		if f, err := os.Open(name); err == nil {
			st, err = ReadKeeperState(f)
			f.Close()
			if err == nil && st.Phase == want {
				return st
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the keeper's state is %+v, want phase %d", st, want)
	return st
}

func TestExecKeepsThePid(t *testing.T) {
	c, state, out := startExec(t, "", "echo self $$; setsid sleep 1000 & echo child $!; exit 7")
	err := c.Wait()
	if c.ProcessState.ExitCode() != 7 {
		t.Errorf("ended with %v, want 7", err)
	}
	f := out()
	if len(f) != 8 || f[5] != strconv.Itoa(c.Process.Pid) {
		t.Fatalf("process %d wrote %q", c.Process.Pid, f)
	}
	st := waitPhase(t, state, PhaseEmpty)
	if st.Method != MethodDomain {
		t.Errorf("method %d", st.Method)
	}
	if alive(t, f[7]) {
		t.Errorf("process %s lives", f[7])
	}
}

func TestExecHasNoForeignChildren(t *testing.T) {
	c, _, out := startExec(t, "", "cat /proc/$$/task/$$/children; echo end")
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	// The only child is cat itself.
	if f := out(); len(f) != 6 || f[5] != "end" {
		t.Errorf("it has children: %q", f[4:])
	}
}

func TestExecKept(t *testing.T) {
	c, state, out := startExec(t, "1", "setsid sleep 1000 & echo $!")
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	waitPhase(t, state, PhaseKept)
	f := out()
	if !alive(t, f[4]) {
		t.Fatal("the kept process is gone")
	}
	keeper, _ := strconv.Atoi(f[1])
	if err := syscall.Kill(keeper, ReapSignal); err != nil {
		t.Fatal(err)
	}
	waitPhase(t, state, PhaseEmpty)
	if alive(t, f[4]) {
		t.Error("the kept process survived")
	}
}
