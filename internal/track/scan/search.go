package scan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/track/proc"
)

// It would be wrong to stop after the first search that finds nothing. A process that forks and
// exits all the time is in the list with a pid that is gone when the probe asks about it, and a
// process that is gone does not match. So a vanished pid makes a search dirty, and only two
// clean searches in a row end the loop.

// Table is the kernel as the loop sees it, or a model of it in tests.
type Table interface {
	// Snapshot returns the process table at about one moment. A process that vanished while the
	// table was made is in it as dead, with Start 0.
	Snapshot() ([]proc.Process, error)
	Lookup(pid int) (proc.Process, error) // syscall.ESRCH if there is none
	Probe(pid int) Answers
	Signal(pid int, sig syscall.Signal) error
	Now() time.Time
	Sleep(time.Duration)
}

// Search is one search for the processes of a session.
type Search struct {
	Table Table
	Self  int

	// Command is the session's first process, if known. It belongs to the session even before
	// it has applied the profile.
	Command proc.ID
	// Supervisor started the command. It is no member, but its children may be.
	Supervisor proc.ID
	// Began is when the session began, in microseconds since 1970, or 0 if unknown. An older
	// process without answers counts as outside.
	Began uint64
	// Limit is the time for all searches; 0 means 10 seconds.
	Limit time.Duration

	end   time.Time
	known map[proc.ID]Match // Outside, which never become members, and Gone, dead ones that were seen
	kills map[proc.ID]int   // how often SIGKILL was sent
	scans int

	Left []proc.Process // what is left after the last scan, or may be
}

// Killed returns how many processes were sent SIGKILL.
func (h *Search) Killed() int { return len(h.kills) }

var (
	// ErrReference says that the fingerprint matches a process that can't be a member, so that
	// the probe can't be trusted.
	ErrReference = errors.New("the fingerprint matches a process outside the session")
	// ErrInside says that the calling process belongs to the session itself.
	ErrInside = errors.New("this process belongs to the session itself")
	// ErrUnproved says that the search ended without proof that nothing is left.
	ErrUnproved = errors.New("the session's end could not be proved")
)

// Run kills until only processes are left that can't be signalled. It returns nil only after
// two clean scans in a row that left nothing, else ErrUnproved, ErrReference, ErrInside or the
// context's error.
func (h *Search) Run(ctx context.Context) error {
	h.known = map[proc.ID]Match{}
	h.kills = map[proc.ID]int{}
	h.scans = 0
	h.end = h.Table.Now().Add(cmp.Or(h.Limit, 10*time.Second))
	var last error // why the last scan was not clean, or nil
	for clean := 0; clean < 2; h.Table.Sleep(5 * time.Millisecond) {
		last = cmp.Or(ctx.Err(), last)
		if ctx.Err() != nil || h.scans > 0 && h.late() {
			return h.unproved(last)
		}
		dirty, err := h.scan()
		if errors.Is(err, ErrReference) || errors.Is(err, ErrInside) {
			return err
		}
		h.scans++
		clean += 1
		last = err
		if dirty || err != nil {
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

// scan searches once. It asks about the newest processes first, since they vanish soonest. A
// dirty scan proves nothing. This process and its ancestors can't be members. If one matches,
// either the session started this process or the probe can't be trusted. Both end the search
// before it does harm.
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
			err = errors.New("the probe gives no answer about this very process")
			dirty = true
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
			if r.Dead() && r.Start != 0 { // it may have forked after the list was begun, so it counts once
				h.known[r.ID] = Gone
			}
			vanished = append(vanished, r)
		case m == Unclear || h.kill(r): // another look would not help if it can't be signalled
			dirty = true
		}
	}
	for _, r := range vanished {
		dirty = dirty || !h.childOfOutsider(r, byPid)
	}
	return dirty, err
}

// classify asks about a process of a snapshot. If it has ended, or another process has its pid
// now, it is Gone, whatever the answers. If it is older than the session and gives no answer,
// it is Outside.
func (h *Search) classify(r proc.Process) Match {
	if r.Dead() {
		return Gone
	}
	m := h.ask(r.Pid)
	now, err := h.Table.Lookup(r.Pid)
	if errors.Is(err, syscall.ESRCH) {
		return Gone
	}
	if err != nil {
		return Unclear
	}
	if now.ID != r.ID || now.Dead() {
		return Gone
	}
	if !h.Command.IsZero() && r.ID == h.Command {
		return Member
	}
	older := h.Began != 0 && r.Start < h.Began
	if m == Unclear && older {
		return Outside
	}
	return m
}

// kill kills a member. It stops the process first and asks again: a stopped process neither
// forks nor exits, so its pid stays its own. Stopping the wrong one can be undone; killing it
// can't. kill reports whether the process can be signalled at all.
func (h *Search) kill(r proc.Process) bool {
	err := h.Table.Signal(r.Pid, syscall.SIGSTOP)
	if err == nil {
		if h.classify(r) != Member {
			_ = h.Table.Signal(r.Pid, syscall.SIGCONT)
			return true
		}
		err = h.Table.Signal(r.Pid, syscall.SIGKILL)
		if err == nil {
			h.kills[r.ID]++
			return true
		}
		_ = h.Table.Signal(r.Pid, syscall.SIGCONT)
	}
	return errors.Is(err, syscall.ESRCH)
}

// ancestors returns this process and those above it, which are never touched.
func (h *Search) ancestors(byPid map[int]proc.Process) []int {
	as := []int{h.Self}
	for r, ok := byPid[h.Self]; ok && r.Parent > 1 && !slices.Contains(as, r.Parent); r, ok = byPid[r.Parent] {
		as = append(as, r.Parent)
	}
	return as
}

func (h *Search) ask(pid int) Match { return h.Table.Probe(pid).Match() }

// childOfOutsider reports whether a vanished process needs no second look, because its parent
// is known to be outside, so it was, too. That is not so for an orphan, whose parent is process
// 1, which is never asked, nor for the supervisor's children, which may be members.
func (h *Search) childOfOutsider(r proc.Process, byPid map[int]proc.Process) bool {
	p, ok := byPid[r.Parent]
	return ok && p.Pid != h.Self && p.ID != h.Supervisor && h.known[p.ID] == Outside
}
