package scan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// scanned is what one search found.
type scanned struct {
	dirty bool  // it proves nothing
	moved bool  // things changed meanwhile: look again at once
	err   error // why, where an error says so

	vanished []proc.Process // what was there and is not any more
}

// change makes a search dirty.
func (s *scanned) change(moved bool) { s.dirty, s.moved = true, s.moved || moved }

// scan searches once. The newest processes are asked first: they are the ones
// that go away soonest. After an error nothing more may be done.
func (h *Search) scan() (s scanned, _ error) {
	snap, err := h.Table.Snapshot()
	if err != nil {
		return scanned{dirty: true, err: fmt.Errorf("listing processes: %w", err)}, nil
	}
	byPid := make(map[int]proc.Process, len(snap.Rows))
	for _, r := range snap.Rows {
		byPid[r.Pid] = r
	}
	spared := h.ancestors(byPid)
	if err := h.references(spared); err != nil {
		return s, err
	}
	if snap.Gone > 0 {
		s.change(true)
	}
	if h.ask(h.Self) == Unclear {
		s.change(false)
		s.err = errors.New("the probe gives no answer about this very process")
	}
	slices.SortFunc(snap.Rows, func(a, b proc.Process) int {
		return cmp.Or(cmp.Compare(b.Start, a.Start), cmp.Compare(b.Pid, a.Pid))
	})
	h.Left = nil
	for _, r := range snap.Rows {
		if h.late() {
			s.change(false)
			break
		}
		if r.Pid > 1 && !slices.Contains(spared, r.Pid) && h.known[r.ID] == Unclear {
			h.visit(r, &s)
		}
	}
	for _, r := range s.vanished {
		if !h.childOfOutsider(r, byPid) {
			s.change(true)
		}
	}
	return s, nil
}

// visit deals with one process of a snapshot of which nothing is known yet.
func (h *Search) visit(r proc.Process, s *scanned) {
	if r.Dead() {
		// It may have been alive, and forked, after the list was begun:
		// once seen it is no news any more.
		h.known[r.ID] = Gone
		s.vanished = append(s.vanished, r)
		return
	}
	switch h.classify(r) {
	case Outside:
		h.known[r.ID] = Outside
	case Gone:
		s.vanished = append(s.vanished, r)
	case Unclear:
		s.change(false)
		h.Left = append(h.Left, Survivor{r, "the probe gives no answer"})
	case Member:
		why, refused := h.kill(r)
		h.Left = append(h.Left, Survivor{r, why})
		if !refused { // to look again changes nothing of that
			s.change(h.kills[r.ID] <= 1)
		}
	}
}

// ancestors lists this process and those above it, which are never touched.
func (h *Search) ancestors(byPid map[int]proc.Process) []int {
	as := []int{h.Self}
	for r, ok := byPid[h.Self]; ok && r.Parent > 1 && !slices.Contains(as, r.Parent); r, ok = byPid[r.Parent] {
		as = append(as, r.Parent)
	}
	return as
}

// references asks about processes that cannot be members: this one and its
// ancestors. If one matches, either this process was started by the session,
// or the probe is not to be believed; both end the search before it does harm.
func (h *Search) references(spared []int) error {
	if h.ask(h.Self) == Member {
		return ErrInside
	}
	for _, pid := range append([]int{1}, spared[1:]...) {
		if h.ask(pid) == Member {
			return fmt.Errorf("%w: process %d", ErrReference, pid)
		}
	}
	return nil
}

// ask asks the kernel about a process.
func (h *Search) ask(pid int) Match { return h.Table.Probe(pid).Match() }

// childOfOutsider reports whether a vanished process needs no second look: its
// parent is known to be outside, so it was, too. An orphan's parent is process
// 1, which is never asked, and the supervisor's children become members.
func (h *Search) childOfOutsider(r proc.Process, byPid map[int]proc.Process) bool {
	p, ok := byPid[r.Parent]
	return ok && p.Pid != h.Self && p.ID != h.Supervisor && h.known[p.ID] == Outside
}
