package track

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// scanned is what one search found.
type scanned struct {
	dirty       bool  // it proves nothing
	moved       bool  // things changed meanwhile: look again at once
	onlyRefused bool  // what made it dirty can't be killed
	err         error // why, where an error says so
	fatal       error // nothing more may be done

	refused  int   // members that can't be signalled
	vanished []row // what was there and is not any more
}

// change makes a search dirty.
func (s *scanned) change(moved bool) {
	s.dirty = true
	s.moved = s.moved || moved
	s.onlyRefused = false
}

// scan searches once. The newest processes are asked first: they are the ones
// that go away soonest.
func (h *hunt) scan() scanned {
	snap, err := h.table.snapshot()
	if err != nil {
		return scanned{dirty: true, err: fmt.Errorf("listing processes: %w", err)}
	}
	byPid := make(map[int]row, len(snap.rows))
	for _, r := range snap.rows {
		byPid[r.Pid] = r
	}
	spared := h.ancestors(byPid)
	if err := h.references(spared); err != nil {
		return scanned{fatal: err}
	}
	s := scanned{onlyRefused: true}
	if snap.gone > 0 {
		s.change(true)
	}
	if h.table.probe(h.self).verdict(h.intact()) == unclear {
		s.change(false)
		s.err = errors.New("the probe gives no answer about this very process")
	}
	slices.SortFunc(snap.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.Start, a.Start), cmp.Compare(b.Pid, a.Pid))
	})
	h.left = nil
	for _, r := range snap.rows {
		if slices.Contains(spared, r.Pid) || r.Pid <= 1 {
			continue
		}
		if h.late() {
			s.change(false)
			break
		}
		h.visit(r, &s)
	}
	for _, r := range s.vanished {
		if !h.childOfOutsider(r, byPid) {
			s.change(true)
		}
	}
	s.onlyRefused = s.onlyRefused && s.refused > 0
	return s
}

// visit deals with one process of a snapshot.
func (h *hunt) visit(r row, s *scanned) {
	switch {
	case h.outsiders[r.ProcID]:
		return
	case r.zombie:
		// It may have been alive, and forked, after the list was begun:
		// once seen it is no news any more.
		if !h.zombies[r.ProcID] {
			h.zombies[r.ProcID] = true
			s.vanished = append(s.vanished, r)
		}
		return
	}
	switch h.judge(r) {
	case isOutside:
		h.outsiders[r.ProcID] = true
	case isOld:
	case isGone:
		s.vanished = append(s.vanished, r)
	case isUnclear:
		s.change(false)
		h.left = append(h.left, survivor{r.ProcID, "the probe gives no answer"})
	case isMember:
		why := h.strike(r)
		h.left = append(h.left, survivor{r.ProcID, why})
		if h.refused[r.ProcID] != nil {
			s.dirty = true
			s.refused++
			return
		}
		s.change(h.struck[r.ProcID] <= 1)
	}
}

// ancestors lists this process and those above it, which are never touched.
func (h *hunt) ancestors(byPid map[int]row) []int {
	as := []int{h.self}
	for r, ok := byPid[h.self]; ok && r.parent > 1 && !slices.Contains(as, r.parent); r, ok = byPid[r.parent] {
		as = append(as, r.parent)
	}
	return as
}

// references asks about processes that cannot be members: this one and its
// ancestors. If one matches, either this process was started by the session,
// or the probe is not to be believed; both end the search before it does harm.
func (h *hunt) references(spared []int) error {
	intact := h.intact()
	if h.table.probe(h.self).verdict(intact) == member {
		return errInside
	}
	for _, pid := range append([]int{1}, spared[1:]...) {
		if h.table.probe(pid).verdict(intact) == member {
			return fmt.Errorf("%w: process %d", errReference, pid)
		}
	}
	return nil
}

func (h *hunt) intact() bool { return h.table.markers() == nil }

// childOfOutsider reports whether a vanished process needs no second look: its
// parent is known to be outside, so it was, too. An orphan's parent is process
// 1, which is never asked, and the supervisor's children become members.
func (h *hunt) childOfOutsider(r row, byPid map[int]row) bool {
	p, ok := byPid[r.parent]
	return ok && p.Pid != h.self && p.ProcID != h.supervisor && h.outsiders[p.ProcID]
}
