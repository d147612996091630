package supervise

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestSignalWhileStarting: a signal is kept for a command that is being started. If the start
// has not begun or takes too long, the signal ends this process, whose user waits for nothing.
func TestSignalWhileStarting(t *testing.T) {
	places := map[string]*passing{"planning": {}, "late": {began: time.Now().Add(-2 * startTime)}}
	if place := places[os.Getenv("ZSBX_TEST_STARTING")]; place != nil {
		place.takes(syscall.SIGTERM, false)
		time.Sleep(10 * time.Second)
		os.Exit(1)
	}
	p := &passing{began: time.Now()}
	if p.takes(syscall.SIGTERM, false) || p.takes(syscall.SIGINT, true) {
		t.Error("a signal was passed on to nobody")
	}
	if len(p.early) != 1 || p.early[0] != syscall.SIGTERM {
		t.Errorf("%v are kept; the keeper has the keyboard's", p.early)
	}
	p.started = true
	if !p.takes(syscall.SIGTERM, false) {
		t.Error("a signal to a started command is kept")
	}
	for place := range places {
		c := exec.Command("/proc/self/exe", "-test.run=^TestSignalWhileStarting$")
		c.Env = append(os.Environ(), "ZSBX_TEST_STARTING="+place)
		out, _ := c.CombinedOutput()
		ws := c.ProcessState.Sys().(syscall.WaitStatus)
		if !ws.Signaled() || ws.Signal() != syscall.SIGTERM {
			t.Errorf("%s: %v: %s", place, c.ProcessState, out)
		}
	}
}
