package track

import (
	"sync"
	"testing"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestProbeAtOnce: sessions that begin at the same time in one program get the same answers.
func TestProbeAtOnce(t *testing.T) {
	if c := probe(Options{Tracker: Cgroup}); c.group == "" {
		testkit.Lacks(t, testkit.Cgroup, c.noGroup)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 10 {
				if c := probe(Options{Tracker: Cgroup}); c.group == "" {
					t.Error(c.noGroup)
					return
				}
			}
		})
	}
	all.Wait()
}
