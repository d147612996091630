package track

import (
	"slices"
	"time"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// orphans looks again at what it finds before it calls it an orphan: a session that
// has just begun is recorded a moment after its keeper is there.
func (s *Store) orphans(listed []Info) ([]Orphan, error) {
	first, err := orphansOf(listed)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	time.Sleep(50 * time.Millisecond)
	if listed, err = s.List(); err != nil {
		return nil, err // what can't be read may account for them
	}
	again, err := orphansOf(listed)
	return slices.DeleteFunc(again, func(o Orphan) bool {
		return !slices.ContainsFunc(first, func(before Orphan) bool { return before.Keeper.ID == o.Keeper.ID })
	}), err
}

// orphansOf picks the orphans from a snapshot.
func orphansOf(listed []Info) ([]Orphan, error) {
	t, err := proc.Snapshot()
	if err != nil {
		return nil, err
	}
	recorded, keepers := make(map[ProcID]bool, len(listed)), make(map[string]ProcID, len(listed))
	for i := range listed {
		recorded[listed[i].Record.Keeper], keepers[listed[i].ID] = true, listed[i].Record.Keeper
	}
	var found []Orphan
	for _, p := range t.Procs {
		if recorded[p.ID] || !isKeeper(p) || belowKeeper(t, p) || t.Procs[p.Parent].Name != BrokerName && hasSupervisor(p) {
			continue
		}
		o := Orphan{Procs: slices.DeleteFunc(t.Below(p.Pid), Proc.Dead)}
		for _, c := range t.Children(p.Pid) {
			if id := sessionOf(c); isID(id) {
				o.ID = id
				break
			}
		}
		if k, taken := keepers[o.ID]; taken && k.IsZero() {
			continue // it may be this one, not yet recorded
		} else if taken {
			o.ID = "" // its processes say so, but that session has another keeper
		}
		one := []Proc{p}
		proc.Fill(one)
		proc.Fill(o.Procs)
		o.Keeper = one[0]
		found = append(found, o)
	}
	slices.SortFunc(found, func(a, b Orphan) int { return a.Keeper.Pid - b.Keeper.Pid })
	return found, nil
}

// belowKeeper reports whether p is below another keeper, which answers for it.
func belowKeeper(t *proc.Table, p Proc) bool {
	for range len(t.Procs) { // a snapshot may hold a ring
		up, ok := t.Procs[p.Parent]
		if !ok || up.Pid <= 1 {
			return false
		}
		if up.Name == keeperName {
			return true
		}
		p = up
	}
	return false
}

// hasSupervisor reports whether p's parent is the program that forked it, which
// still answers for its session: a keeper has its parent's arguments, for it
// executes nothing.
func hasSupervisor(p Proc) bool {
	both := []Proc{p, {ID: ProcID{Pid: p.Parent}}}
	proc.Fill(both)
	return len(both[0].Argv) > 0 && slices.Equal(both[0].Argv, both[1].Argv)
}
