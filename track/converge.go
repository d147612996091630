package track

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"
)

// Killing a session that has no kernel object of its own: macOS has no cgroup
// and no subreaper, only the profile that every descendant carries. So the
// process table is searched, and what carries the profile is killed, until
// nothing is found any more. The obvious loop, which ends with the first search
// that finds nothing, is wrong: a process that forks and exits all the time is
// in the list under a pid that is gone when it is asked about, and what is gone
// does not match. Here a pid that vanished makes a search dirty; only two clean
// ones in a row end the loop.

// row is one process of a snapshot.
type row struct {
	ProcID
	parent, group int
	zombie        bool // only its table entry is left
}

// snapshot is the process table at about one moment.
type snapshot struct {
	rows []row
	// gone counts processes that were there when it was begun, and were
	// not any more when it was their turn.
	gone int
}

// processTable is the system as the loop sees it: the kernel, and in tests a
// model of one.
type processTable interface {
	snapshot() (snapshot, error)
	lookup(pid int) (row, error) // syscall.ESRCH when there is none
	probe(pid int) answers
	markers() error // nil as long as the marker files are as they were made
	signal(pid int, sig syscall.Signal) error
	now() time.Time
	sleep(time.Duration)
}

// hunt is one search for the processes of a session.
type hunt struct {
	table processTable
	self  int

	// command is the session's first process, if it is known: it belongs
	// to the session even before it has put the profile on.
	command ProcID
	// supervisor started the command: of its children it cannot be said
	// that they are no members because it is none.
	supervisor ProcID
	// group is the session's own process group, 0 if it has none that is
	// led by command.
	group int
	// began is when the session was made, in microseconds since 1970; 0 if
	// that is not known. A process that gives no answer and is older is
	// not looked at.
	began uint64
	// limit bounds the time of all.
	limit time.Duration

	end       time.Time
	outsiders map[ProcID]bool // proved not to be members; they never become any
	zombies   map[ProcID]bool // seen before
	struck    map[ProcID]int  // how often SIGKILL was sent
	refused   map[ProcID]error
	left      []survivor // of the last scan
}

// survivor is a process that is still there, or may be.
type survivor struct {
	ProcID
	why string
}

// huntResult is what was done.
type huntResult struct {
	killed int // processes that SIGKILL was sent to
	scans  int
	left   []survivor
}

// errReference says that the probe claims membership of a process that cannot
// be a member, so that nothing it says can be believed.
var errReference = errors.New("the fingerprint matches a process outside the session")

// errInside says that the calling process belongs to the session itself.
var errInside = errors.New("this process belongs to the session itself")

// leftError says that the search ended without proof.
type leftError struct {
	left []survivor // may be empty
	last error      // why the last scans were not clean, or nil
}

func (e *leftError) Error() string {
	var parts []string
	for _, s := range e.left {
		parts = append(parts, fmt.Sprintf("process %d (%s)", s.Pid, s.why))
	}
	if len(parts) == 0 {
		parts = append(parts, "no two searches in a row found no change")
	}
	msg := "the session's end could not be proved: " + strings.Join(parts, ", ")
	if e.last != nil {
		msg += ": " + e.last.Error()
	}
	return msg
}

func (e *leftError) Unwrap() error { return e.last }

const (
	huntLimit = 10 * time.Second     // of a whole search, unless the caller says else
	huntPause = 5 * time.Millisecond // between searches that changed nothing
	cleanRuns = 2                    // clean scans in a row that prove the end
	stuckRuns = 3                    // scans in a row that found nothing but what cannot be killed
)

// run kills until nothing is left. The error is nil only after two clean scans
// in a row; otherwise it is a *leftError, errReference, errInside or the
// context's.
func (h *hunt) run(ctx context.Context) (huntResult, error) {
	h.outsiders, h.zombies = map[ProcID]bool{}, map[ProcID]bool{}
	h.struck, h.refused = map[ProcID]int{}, map[ProcID]error{}
	if h.limit == 0 {
		h.limit = huntLimit
	}
	h.strikeGroup()
	var res huntResult
	var last error
	clean, stuck := 0, 0
	h.end = h.table.now().Add(h.limit)
	for clean < cleanRuns {
		if err := ctx.Err(); err != nil {
			last = err
			break
		}
		if res.scans > 0 && h.late() || stuck == stuckRuns {
			break
		}
		s := h.scan()
		res.scans++
		if s.fatal != nil {
			return h.result(res), s.fatal
		}
		clean, stuck, last = clean+1, stuck+1, s.err
		if s.dirty {
			clean = 0
		}
		if !s.onlyRefused {
			stuck = 0
		}
		if !s.moved {
			h.table.sleep(huntPause)
		}
	}
	res = h.result(res)
	if clean == cleanRuns {
		return res, nil
	}
	return res, &leftError{left: res.left, last: last}
}

func (h *hunt) late() bool { return h.table.now().After(h.end) }

func (h *hunt) result(res huntResult) huntResult {
	res.killed, res.left = len(h.struck), h.left
	return res
}

// strikeGroup kills the session's own process group at once, as long as its
// leader is the very process that was recorded. It is no more than a head
// start.
func (h *hunt) strikeGroup() {
	if h.group <= 1 || h.group != h.command.Pid {
		return
	}
	if r, err := h.table.lookup(h.group); err == nil && r.ProcID == h.command && r.group == h.group && !r.zombie {
		if h.table.signal(-h.group, syscall.SIGKILL) == nil {
			h.struck[r.ProcID]++
		}
	}
}
