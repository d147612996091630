//go:build linux && amd64

// Command faults has system calls of zsbx fail, one at a time, over the start,
// the run and the end of a session, and says what came of each: whether the
// command ran confined, or was refused with a message. It also sends signals at
// any moment, takes resources away and spoils the records of sessions.
//
// It fails when zsbx hangs, loses output or a status, leaves processes, or has a
// command run with something open that it did not say.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// harness is one run of this program.
type harness struct {
	zsbx, self string
	limit      time.Duration // for one case
	workers    int
	each       int // this many faults of each scenario; 0 for all
	rounds     int // of signals
	seed       uint64
	verbose    bool
	only       string
	parts      string

	allowed map[string]bool // what is open without zsbx
	table   *table
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "probe" {
		os.Exit(probe(os.Args[2:]))
	}
	h := &harness{table: &table{}}
	flag.StringVar(&h.zsbx, "zsbx", "./zsbx", "the `program` to try")
	flag.DurationVar(&h.limit, "limit", 20*time.Second, "after this time a case hangs; it is tried again with three times as much")
	flag.IntVar(&h.workers, "workers", 2, "cases at a time")
	flag.IntVar(&h.each, "each", 0, "only `N` faults of each scenario, evenly chosen; 0 for all")
	flag.IntVar(&h.rounds, "rounds", 200, "rounds of signals")
	flag.Uint64Var(&h.seed, "seed", 1, "of the moments of the signals")
	flag.BoolVar(&h.verbose, "v", false, "print each case")
	flag.StringVar(&h.only, "only", "", "only the faults whose name `REGEXP` fits, as \"zsbx openat 3 EMFILE\"")
	flag.StringVar(&h.parts, "parts", "calls,signals,resources,records", "what to do")
	flag.Parse()
	if err := h.run(); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func (h *harness) run() (err error) {
	if h.zsbx, err = filepath.Abs(h.zsbx); err != nil {
		return err
	}
	if h.self, err = os.Executable(); err != nil {
		return err
	}
	if err := h.control(); err != nil {
		return err
	}
	for _, part := range strings.Split(h.parts, ",") {
		do, ok := map[string]func() error{"calls": h.calls, "signals": h.signals, "resources": h.resources, "records": h.spoil}[part]
		if !ok {
			return fmt.Errorf("no part %q", part)
		}
		if err := do(); err != nil {
			return err
		}
	}
	h.table.print(os.Stdout)
	if n := h.table.bad(); n > 0 {
		return fmt.Errorf("%d cases went wrong", n)
	}
	return nil
}

// control runs the probe without zsbx: what is closed to it anyway proves
// nothing.
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
