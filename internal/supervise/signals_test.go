package supervise

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestLateSignal: a signal from the keyboard that is delivered just after the command's end was
// meant for the command, and does not end this process. A later one does, and so does one that
// was sent to this process alone.
func TestLateSignal(t *testing.T) {
	got := make(chan os.Signal, 1)
	for _, c := range []struct {
		ago      time.Duration
		keyboard bool
		ends     bool
	}{
		{0, true, false},
		{2 * lateTime, true, true},
		{0, false, true},
	} {
		p := &passing{started: true, ended: time.Now().Add(-c.ago)}
		// The default action of SIGWINCH is nothing. takes resets it, and sends it.
		signal.Notify(got, syscall.SIGWINCH)
		if p.takes(syscall.SIGWINCH, c.keyboard) {
			t.Errorf("%+v: it is for a command that has ended", c)
		}
		reset := syscall.Kill(os.Getpid(), syscall.SIGWINCH) == nil && !testkit.Within(lateTime, func() bool {
			return len(got) > 0
		})
		if reset != c.ends {
			t.Errorf("%+v: this process would end: %v", c, reset)
		}
		signal.Stop(got)
		for len(got) > 0 {
			<-got
		}
	}
}
