package track

import (
	"sync"
	"testing"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestProbeAtOnce: sessions that begin at once in one program find the same.
func TestProbeAtOnce(t *testing.T) {
	if c := probe(); c.Cgroup == "" {
		testkit.Lacks(t, testkit.Cgroup, c.CgroupWhy)
	}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for range 10 {
				if c := probe(); c.Cgroup == "" {
					t.Error(c.CgroupWhy)
					return
				}
			}
		})
	}
	all.Wait()
}
