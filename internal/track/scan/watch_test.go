package scan

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"
)

// ending ends the session of a simulated kernel, as Store.Reap does.
func ending(k *simKernel) func() bool {
	return func() bool {
		return searcher(k).Run(context.Background()) == nil
	}
}

// TestWatchEndsOrphans: a killed supervisor leaves nothing running, however the session's
// processes hide, and outsiders live. The control: without a watcher they keep running.
func TestWatchEndsOrphans(t *testing.T) {
	for name, h := range map[string]hazards{
		"sleepers": {pids: 200, outsiders: 20, sleepers: 5},
		"a hopper": {pids: 400, outsiders: 40, hoppers: 1, hop: 10},
		"all":      {pids: 1000, outsiders: 30, churn: 20, sleepers: 5, hoppers: 2, hop: 5, breeders: 1, breed: 3},
	} {
		for seed := range uint64(20) {
			k := newSimKernel(h, seed)
			k.Sleep(100 * time.Millisecond)
			if len(k.members()) == 0 {
				t.Fatalf("%s, seed %d: nothing runs: the test proves nothing", name, seed)
			}
			words, supervisor := io.Pipe()
			go supervisor.Close() // as the kernel does when the process is gone
			Watch(words, ending(k), k.Sleep)
			if alive := k.members(); len(alive) > 0 {
				t.Errorf("%s, seed %d: %v live", name, seed, alive)
			}
			if w := k.wronged(); len(w) > 0 {
				t.Errorf("%s, seed %d: outsiders came to harm: %v", name, seed, w)
			}
		}
	}
}

// TestWatchWaits: the watcher does nothing while the supervisor lives, or after it said that
// the session is over or is kept.
func TestWatchWaits(t *testing.T) {
	words, supervisor := io.Pipe()
	called, over := make(chan bool, watchTries), make(chan bool)
	go func() {
		Watch(words, func() bool { called <- true; return true }, time.Sleep)
		close(over)
	}()
	select {
	case <-over:
		t.Error("it did not wait")
	case <-time.After(10 * time.Millisecond):
	}
	if _, err := supervisor.Write([]byte{WordOver}); err != nil {
		t.Fatal(err)
	}
	<-over
	supervisor.Close()
	if len(called) > 0 {
		t.Error("a session that was over was ended again")
	}
}

// TestWatchTriesAgain: it tries until the end is proved, but not for ever.
func TestWatchTriesAgain(t *testing.T) {
	for fails, want := range map[int]int{0: 1, 3: 4, 1000: watchTries} {
		n := 0
		var slept time.Duration
		Watch(strings.NewReader(""), func() bool { n++; return n > fails }, func(d time.Duration) { slept += d })
		if n != want || slept > watchTries*time.Second {
			t.Errorf("after %d failures: tried %d times in %v, want %d", fails, n, slept, want)
		}
	}
}
