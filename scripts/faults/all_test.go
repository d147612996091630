//go:build linux && amd64

package faults

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

// harness is one run.
type harness struct {
	zsbx, self string
	limit      time.Duration // for one case
	workers    int
	each       int // this many faults of each scenario; 0 for all
	rounds     int // of signals
	seed       uint64
	verbose    bool
	only       string

	table *table
}

var (
	everything = flag.Bool("everything", false, "what make faults does")
	rounds     = flag.Int("rounds", 200, "with -everything: rounds of signals")
	seed       = flag.Uint64("seed", 1, "with -everything: of the moments of the signals")
	only       = flag.String("only", "", "with -everything: only the faults whose name `REGEXP` fits, as \"zsbx openat 3 EMFILE\"")
)

// TestEverything takes some 20 minutes.
func TestEverything(t *testing.T) {
	if !*everything {
		t.Skip("make faults runs it")
	}
	h := newHarness(t)
	h.rounds, h.seed, h.only, h.verbose = *rounds, *seed, *only, testing.Verbose()
	for _, part := range []func() error{h.calls, h.signals, h.resources, h.spoil} {
		if err := part(); err != nil {
			t.Fatal(err)
		}
	}
	h.check(t)
}

// control runs the probe without zsbx. What is closed even then proves nothing.
func (h *harness) control() error {
	s, err := newScene(h.self)
	if err != nil {
		return err
	}
	defer s.end()
	r, err := h.plain(s, s.command("probe"), nil)
	if err != nil {
		return err
	}
	s.kill()
	open, _ := r.open()
	if r.status.ExitStatus() != probeStatus || len(open) < len(escapes())-4 {
		return fmt.Errorf("without zsbx only %d of %d escapes are open, status %s: %s", len(open), len(escapes()), statusText(r.status), r.err)
	}
	fmt.Printf("without zsbx %d of %d escapes are open\n", len(open), len(escapes()))
	return nil
}
