package track

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestNoLimits: if there can be no group, no session begins.
func TestNoLimits(t *testing.T) {
	all := Limits{Memory: 1 << 30, Pids: 100, CPU: 1000}
	err := ProbeLimits(all)
	if err == nil {
		t.Skip("there are limits here")
	}
	if _, err := Begin(Options{Store: tempStore(t), Limits: all}); !errors.Is(err, ErrLimits) {
		t.Errorf("%v", err)
	}
}

// TestLimited runs a session of each tracker in a group with limits.
func TestLimited(t *testing.T) {
	all := Limits{Memory: 64 << 20, Pids: 8, CPU: 1000}
	if err := ProbeLimits(all); err != nil {
		t.Skip(err) // this needs the controllers, too
	}
	for _, kind := range []Kind{Auto, Cgroup, Subtree} {
		s := begin(t, Options{Store: tempStore(t), Limits: all, Tracker: kind, Confined: true},
			runShell(t, `for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done`))
		if status, err := s.Wait(); err != nil || status.ExitStatus() == 0 {
			t.Errorf("%s: more processes than it may have: %v, %v", kind, status, err)
		}
		path := s.record.Cgroup.Path
		r, err := s.Close(deadline(t))
		if err != nil || !r.Done() {
			t.Errorf("%s: %+v, %v", kind, r, err)
		}
		if _, err := os.Stat(path); err == nil && !strings.HasSuffix(path, ".scope") {
			t.Errorf("%s: %s is still there", kind, path)
		}
	}
}
