package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// The obvious loop, which ends with the first search that finds nothing, is wrong: a
// process that forks and exits all the time is in the list under a pid that is gone
// when it is asked about, and what is gone does not match. Here a pid that vanished
// makes a search dirty; only two clean ones in a row end the loop.

// Table is the system as the loop sees it: the kernel, and in tests a
// model of one.
type Table interface {
	// Snapshot is the process table at about one moment. What was there when it was
	// begun, and was not any more when it was its turn, is dead, with Start 0.
	Snapshot() ([]proc.Process, error)
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
	// Limit bounds the time of all; 0 for 10 seconds.
	Limit time.Duration

	end   time.Time
	known map[proc.ID]Match // Outside, which never become members, and Gone: dead ones that were seen
	kills map[proc.ID]int   // how often SIGKILL was sent
	scans int

	Left []proc.Process // what is still there after the last scan, or may be
}

// Killed counts the processes that SIGKILL was sent to.
func (h *Search) Killed() int { return len(h.kills) }

var (
	// ErrReference says that the probe claims membership of a process that cannot
	// be a member, so that nothing it says can be believed.
	ErrReference = errors.New("the fingerprint matches a process outside the session")
	// ErrInside says that the calling process belongs to the session itself.
	ErrInside = errors.New("this process belongs to the session itself")
	// ErrUnproved says that the search ended without proof.
	ErrUnproved = errors.New("the session's end could not be proved")
)

// Run kills until nothing is left but what can't be signalled. The error is nil only
// after two clean scans in a row that left nothing; otherwise it is ErrUnproved,
// ErrReference, ErrInside or the context's.
func (h *Search) Run(ctx context.Context) error {
	h.known, h.kills, h.scans = map[proc.ID]Match{}, map[proc.ID]int{}, 0
	h.end = h.Table.Now().Add(cmp.Or(h.Limit, 10*time.Second))
	var last error // why the last scan was not clean, or nil
	for clean := 0; clean < 2; h.Table.Sleep(5 * time.Millisecond) {
		if last = cmp.Or(ctx.Err(), last); ctx.Err() != nil || h.scans > 0 && h.late() {
			return h.unproved(last)
		}
		dirty, err := h.scan()
		if errors.Is(err, ErrReference) || errors.Is(err, ErrInside) {
			return err
		}
		h.scans++
		if clean, last = clean+1, err; dirty || err != nil {
			clean = 0
		}
	}
	if len(h.Left) > 0 {
		return h.unproved(nil)
	}
	return nil
}

func (h *Search) late() bool { return h.Table.Now().After(h.end) }

func (h *Search) unproved(last error) error {
	err := fmt.Errorf("%w: %d processes do not end, can't be signalled, or give no answer", ErrUnproved, len(h.Left))
	if last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// scan searches once. The newest processes are asked first: they are the ones
// that go away soonest. A dirty one proves nothing. This process and its ancestors can't
// be members. If one matches, either this process was started by the session, or the probe
// is not to be believed; both end the search before it does harm.
func (h *Search) scan() (dirty bool, _ error) {
	rows, err := h.Table.Snapshot()
	if err != nil {
		return true, fmt.Errorf("listing processes: %w", err)
	}
	byPid := make(map[int]proc.Process, len(rows))
	for _, r := range rows {
		byPid[r.Pid] = r
	}
	spared := h.ancestors(byPid)
	for _, pid := range append(spared, 1) {
		switch m := h.ask(pid); {
		case m == Member && pid == h.Self:
			return true, ErrInside
		case m == Member:
			return true, fmt.Errorf("%w: process %d", ErrReference, pid)
		case m == Unclear && pid == h.Self:
			err, dirty = errors.New("the probe gives no answer about this very process"), true
		}
	}
	slices.SortFunc(rows, func(a, b proc.Process) int {
		return cmp.Or(cmp.Compare(b.Start, a.Start), cmp.Compare(b.Pid, a.Pid))
	})
	h.Left = nil
	var vanished []proc.Process
	for _, r := range rows {
		if h.late() {
			dirty = true
			break
		}
		if r.Pid <= 1 || slices.Contains(spared, r.Pid) || h.known[r.ID] != Unclear {
			continue
		}
		m := h.classify(r)
		if m == Member || m == Unclear {
			h.Left = append(h.Left, r)
		}
		switch {
		case m == Outside:
			h.known[r.ID] = Outside
		case m == Gone:
			if r.Dead() && r.Start != 0 { // it may have forked after the list was begun: once seen it is no news
				h.known[r.ID] = Gone
			}
			vanished = append(vanished, r)
		case m == Unclear || h.kill(r): // to look again changes nothing of what can't be signalled
			dirty = true
		}
	}
	for _, r := range vanished {
		dirty = dirty || !h.childOfOutsider(r, byPid)
	}
	return dirty, err
}

// classify asks about a process of a snapshot. A process that has ended, or whose
// pid belongs to another one now, is gone, whatever was answered. One that gives no
// answer and is older than the session is outside.
func (h *Search) classify(r proc.Process) Match {
	if r.Dead() {
		return Gone
	}
	m := h.ask(r.Pid)
	now, err := h.Table.Lookup(r.Pid)
	switch {
	case errors.Is(err, syscall.ESRCH):
		return Gone
	case err != nil:
		return Unclear
	case now.ID != r.ID || now.Dead():
		return Gone
	case !h.Command.IsZero() && r.ID == h.Command:
		return Member
	case m == Unclear && h.Began != 0 && r.Start < h.Began:
		return Outside
	}
	return m
}

// kill kills a member. It is stopped first: a stopped process neither forks
// nor ends by itself, so its pid stays its own while it is asked again. Stopping
// a wrong one can be undone, killing it can't. It reports whether the process can be
// signalled at all.
func (h *Search) kill(r proc.Process) bool {
	err := h.Table.Signal(r.Pid, syscall.SIGSTOP)
	if err == nil {
		if h.classify(r) != Member {
			_ = h.Table.Signal(r.Pid, syscall.SIGCONT)
			return true
		}
		if err = h.Table.Signal(r.Pid, syscall.SIGKILL); err == nil {
			h.kills[r.ID]++
			return true
		}
		_ = h.Table.Signal(r.Pid, syscall.SIGCONT)
	}
	return errors.Is(err, syscall.ESRCH)
}

// ancestors lists this process and those above it, which are never touched.
func (h *Search) ancestors(byPid map[int]proc.Process) []int {
	as := []int{h.Self}
	for r, ok := byPid[h.Self]; ok && r.Parent > 1 && !slices.Contains(as, r.Parent); r, ok = byPid[r.Parent] {
		as = append(as, r.Parent)
	}
	return as
}

func (h *Search) ask(pid int) Match { return h.Table.Probe(pid).Match() }

// childOfOutsider reports whether a vanished process needs no second look: its
// parent is known to be outside, so it was, too. An orphan's parent is process
// 1, which is never asked, and the supervisor's children become members.
func (h *Search) childOfOutsider(r proc.Process, byPid map[int]proc.Process) bool {
	p, ok := byPid[r.Parent]
	return ok && p.Pid != h.Self && p.ID != h.Supervisor && h.known[p.ID] == Outside
}
