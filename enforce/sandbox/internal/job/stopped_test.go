package job

import (
	"testing"
	"time"
)

// TestStaysStopped: a process that reap stops before it kills it is not one that
// the user has stopped.
func TestStaysStopped(t *testing.T) {
	for until, want := range map[time.Duration]bool{0: false, time.Microsecond: false, 20 * time.Millisecond: false, time.Hour: true} {
		var now time.Duration
		got := staysStopped(func() bool { return now < until }, func(d time.Duration) { now += d })
		if got != want || now > 100*time.Millisecond {
			t.Errorf("stopped for %v: %v after %v", until, got, now)
		}
	}
}
