package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// The obvious loop, which ends with the first search that finds nothing, is wrong: a
// process that forks and exits all the time is in the list under a pid that is gone
// when it is asked about, and what is gone does not match. Here a pid that vanished
// makes a search dirty; only two clean ones in a row end the loop.

// Snapshot is the process table at about one moment.
type Snapshot struct {
	Rows []proc.Process
	// Gone counts processes that were there when it was begun, and were
	// not any more when it was their turn.
	Gone int
}

// Table is the system as the loop sees it: the kernel, and in tests a
// model of one.
type Table interface {
	Snapshot() (Snapshot, error)
	Lookup(pid int) (proc.Process, error) // syscall.ESRCH when there is none
	Probe(pid int) Answers
	Signal(pid int, sig syscall.Signal) error
	Now() time.Time
	Sleep(time.Duration)
}

// Search is one search for the processes of a session.
type Search struct {
	Table Table
	Self  int

	// Command is the session's first process, if it is known: it belongs
	// to the session even before it has put the profile on.
	Command proc.ID
	// Supervisor started the command: of its children it cannot be said
	// that they are no members because it is none.
	Supervisor proc.ID
	// Began is when the session was made, in microseconds since 1970; 0 if
	// that is not known. A process that gives no answer and is older is
	// not looked at.
	Began uint64
	// Limit bounds the time of all.
	Limit time.Duration

	end   time.Time
	known map[proc.ID]Match // Outside, which never become members, and Gone: zombies that were seen
	kills map[proc.ID]int   // how often SIGKILL was sent
	scans int

	Left []Survivor // of the last scan
}

// Killed counts the processes that SIGKILL was sent to.
func (h *Search) Killed() int { return len(h.kills) }

// Survivor is a process that is still there, or may be.
type Survivor struct {
	proc.Process
	Why string
}

// ErrReference says that the probe claims membership of a process that cannot
// be a member, so that nothing it says can be believed.
var ErrReference = errors.New("the fingerprint matches a process outside the session")

// ErrInside says that the calling process belongs to the session itself.
var ErrInside = errors.New("this process belongs to the session itself")

// ErrUnproved says that the search ended without proof.
var ErrUnproved = errors.New("the session's end could not be proved")

// unproved is ErrUnproved with what is left. last is why the last scans were not
// clean, or nil.
func (h *Search) unproved(last error) error {
	var parts []string
	for _, s := range h.Left {
		parts = append(parts, fmt.Sprintf("process %d (%s)", s.Pid, s.Why))
	}
	if len(parts) == 0 {
		parts = append(parts, "no two searches in a row found no change")
	}
	err := fmt.Errorf("%w: %s", ErrUnproved, strings.Join(parts, ", "))
	if last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
}

const (
	searchLimit = 10 * time.Second     // of a whole search, unless the caller says else
	searchPause = 5 * time.Millisecond // between searches that changed nothing
	cleanRuns   = 2                    // clean scans in a row that prove the end
)

// Run kills until nothing is left but what can't be signalled. The error is nil only
// after two clean scans in a row that left nothing; otherwise it is ErrUnproved,
// ErrReference, ErrInside or the context's.
func (h *Search) Run(ctx context.Context) error {
	h.known, h.kills = map[proc.ID]Match{}, map[proc.ID]int{}
	h.end = h.Table.Now().Add(cmp.Or(h.Limit, searchLimit))
	var last error
	h.scans = 0
	for clean := 0; clean < cleanRuns; {
		if last = cmp.Or(ctx.Err(), last); ctx.Err() != nil || h.scans > 0 && h.late() {
			return h.unproved(last)
		}
		s, err := h.scan()
		if err != nil {
			return err
		}
		h.scans++
		clean, last = clean+1, s.err
		if s.dirty {
			clean = 0
		}
		if !s.moved {
			h.Table.Sleep(searchPause)
		}
	}
	if len(h.Left) > 0 {
		return h.unproved(nil)
	}
	return nil
}

func (h *Search) late() bool { return h.Table.Now().After(h.end) }
