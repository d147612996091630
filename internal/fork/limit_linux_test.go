package fork

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// limited starts a shell with a limit.
func limited(t *testing.T, k *Keeper, l Limit, script string) *Process {
	t.Helper()
	c := &Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(), Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Keeper: k, Limit: l}
	if k == nil {
		return own(t, c)
	}
	p, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestLimit: the command is asked to end, then killed, with a keeper and, as on macOS, without.
// The caller gets both events.
func TestLimit(t *testing.T) {
	const stubborn = `trap "" TERM; ready; while :; do sleep 0.05; done`
	second := Limit{Time: 300 * time.Millisecond, Kill: 300 * time.Millisecond}
	asked := Limit{Time: second.Time, Kill: testkit.Patience}
	for name, c := range map[string]struct {
		limit  Limit
		script string
		late   bool
		want   syscall.WaitStatus
		took   time.Duration // at least
	}{
		"in time":           {Limit{Time: time.Minute}, "ready; exit 3", false, 3 << 8, 0},
		"asked":             {asked, `trap "exit 4" TERM; ready; while :; do sleep 0.05; done`, true, 4 << 8, second.Time},
		"killed":            {second, stubborn, true, 9, second.Time + second.Kill},
		"stopped":           {asked, `ready; kill -STOP $$`, true, 15, second.Time},
		"stopped, stubborn": {second, `trap "" TERM; ready; kill -STOP $$; while :; do kill -STOP $$; done`, true, 9, second.Time + second.Kill},
	} {
		for _, k := range []*Keeper{nil, {}} {
			t.Run(name+map[bool]string{true: ", no keeper"}[k == nil], func(t *testing.T) {
				t.Parallel()
				limit, ready := c.limit, filepath.Join(t.TempDir(), "ready")
				for ; ; limit.Time *= 2 {
					began := time.Now()
					p := limited(t, k, limit, "ready() { : >"+ready+"; }; "+c.script)
					late, status := false, syscall.WaitStatus(0xffff)
					for {
						ev, err := p.Next()
						if err != nil {
							t.Fatal(err)
						}
						if ev.Kind == Emptied {
							break
						}
						late = late || ev.Kind == TimedOut
						if ev.Kind == Exited {
							status = ev.Status
						}
					}
					took := time.Since(began)
					if _, err := os.Stat(ready); err != nil && limit.Time < testkit.Patience {
						continue // the machine was too busy for it to get that far in time
					}
					if late != c.late || status != c.want || took < c.took {
						t.Errorf("late %t, status %#x after %s", late, int(status), took)
					}
					return
				}
			})
		}
	}
}

// TestLimitEndsAll: what a command leaves when its time is over is killed at once. An extremely
// long limit is no limit.
func TestLimitEndsAll(t *testing.T) {
	left := filepath.Join(t.TempDir(), "left")
	for limit := 200 * time.Millisecond; ; limit *= 2 {
		p := limited(t, &Keeper{}, Limit{Time: limit, Kill: time.Minute}, `setsid sh -c 'trap "" TERM; : >`+left+`; sleep 1000' & wait`)
		ws, killed := finish(t, p)
		if _, err := os.Stat(left); err != nil && limit < testkit.Patience {
			continue // the machine was too busy for it to leave anything in time
		}
		if ws.Signal() != syscall.SIGTERM || killed < 1 {
			t.Errorf("status %#x, %d killed", int(ws), killed)
		}
		break
	}
	p := limited(t, &Keeper{}, Limit{Time: 1<<63 - 1, Kill: 1<<63 - 1}, "sleep 0.1; exit 5")
	if ws, _ := finish(t, p); ws.ExitStatus() != 5 {
		t.Errorf("status %#x", int(ws))
	}
}

// TestKeeperWakesCaller: a stopped caller continues when the keeper has ended. The caller is
// this test again, in another process.
func TestKeeperWakesCaller(t *testing.T) {
	if name := os.Getenv("FORK_TEST_STOPPED"); name != "" {
		p := limited(t, &Keeper{}, Limit{}, "exec sleep 1000")
		if err := os.WriteFile(name, []byte(strconv.Itoa(p.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		finish(t, p)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(t.TempDir(), "pid")
	pid, err := syscall.ForkExec(self, []string{self, "-test.run=^TestKeeperWakesCaller$"}, &syscall.ProcAttr{
		Env: append(os.Environ(), "FORK_TEST_STOPPED="+command), Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, syscall.WUNTRACED, nil); err != nil || !ws.Stopped() {
		t.Fatalf("status %#x, %v", int(ws), err)
	}
	b, err := os.ReadFile(command)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(string(b))
	_ = syscall.Kill(n, syscall.SIGKILL)
	if !testkit.Within(testkit.Patience, func() bool {
		got, _ := syscall.Wait4(pid, &ws, syscall.WNOHANG, nil)
		return got == pid
	}) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, &ws, 0, nil)
		t.Fatal("it is stopped for ever")
	}
	if !ws.Exited() || ws.ExitStatus() != 0 {
		t.Errorf("status %#x", int(ws))
	}
}

// TestCommitFails: nothing runs if Commit fails.
func TestCommitFails(t *testing.T) {
	failure := errors.New("no room")
	marker := filepath.Join(t.TempDir(), "ran")
	for range 5 {
		p, err := Start(&Command{
			Path: "/bin/sh", Args: []string{"sh", "-c", ": >" + marker}, Keeper: &Keeper{},
			Commit: []func(*Process) error{func(*Process) error { return failure }},
		})
		if p != nil || !errors.Is(err, failure) {
			t.Errorf("got %v, %v", p, err)
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran all the same")
	}
}

// TestSendIsBounded: a keeper that does not read delays nobody for long.
func TestSendIsBounded(t *testing.T) {
	p := limited(t, &Keeper{}, Limit{}, "sleep 1000")
	defer func() {
		_ = syscall.Kill(p.KeeperPid, syscall.SIGCONT)
		_ = p.Kill()
		finish(t, p)
	}()
	_ = syscall.Kill(p.KeeperPid, syscall.SIGSTOP)
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); {
		if err := p.send(message{msgSignal, uint32(syscall.SIGURG)}); err != nil {
			if !errors.Is(err, unix.EAGAIN) {
				t.Error(err)
			}
			return
		}
	}
	t.Error("no end of messages for a stopped keeper")
}

// TestSignalWakes: a signal for the command reaches it although the keeper was stopped.
func TestSignalWakes(t *testing.T) {
	p := limited(t, &Keeper{}, Limit{}, "sleep 1000")
	stopAndSee(t, p.KeeperPid)
	if err := p.Signal(syscall.SIGUSR1); err != nil {
		t.Error(err)
	}
	if ws, _ := finish(t, p); ws.Signal() != syscall.SIGUSR1 {
		t.Errorf("the command ended with %v", ws)
	}
}

// TestStartIsBounded: a keeper that was stopped before the command runs is woken. If that does
// not help, the time limit ends the start.
func TestStartIsBounded(t *testing.T) {
	began := time.Now()
	p, err := Start(&Command{
		Path: "/bin/true", Args: []string{"true"}, Keeper: &Keeper{}, Limit: Limit{Time: 5 * time.Second},
		Commit: []func(*Process) error{func(p *Process) error { stopAndSee(t, p.KeeperPid); return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	if took := time.Since(began); took < startTime {
		t.Errorf("the keeper was not stopped: %s", took)
	}
}

// stopAndSee stops a process and returns once it is stopped.
func stopAndSee(t *testing.T, pid int) {
	t.Helper()
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	for end := time.Now().Add(testkit.Patience); time.Now().Before(end); {
		b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if strings.Contains(string(b), ") T ") {
			return
		}
	}
	t.Fatal("it does not stop")
}
