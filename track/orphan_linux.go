package track

import (
	"os"
	"slices"
	"time"
)

// orphans looks again at what it finds before it calls it an orphan: a session that
// has just begun is recorded a moment after its keeper is there.
func (s *Store) orphans(listed []Info) ([]Orphan, error) {
	t, err := readTable()
	if err != nil {
		return nil, err
	}
	left := orphansIn(t, listed)
	for look := 0; look < 2 && len(left) > 0; look++ {
		time.Sleep(25 * time.Millisecond)
		if listed, err = s.List(); err != nil {
			return nil, err // what can't be read may account for them
		}
		if t, err = readTable(); err != nil {
			return nil, err
		}
		again := orphansIn(t, listed)
		left = slices.DeleteFunc(again, func(s Orphan) bool {
			return !slices.ContainsFunc(left, func(o Orphan) bool { return o.Keeper.ProcID == s.Keeper.ProcID })
		})
	}
	return left, nil
}

// orphansIn picks the orphans from a snapshot.
func orphansIn(t table, listed []Info) []Orphan {
	recorded, keepers := make(map[ProcID]bool, len(listed)), make(map[string]ProcID, len(listed))
	for i := range listed {
		recorded[listed[i].Holder.Keeper], keepers[listed[i].ID] = true, listed[i].Holder.Keeper
	}
	children := t.children()
	var found []Orphan
	for _, p := range t {
		if p.Name != keeperName || recorded[p.ProcID] || !p.isKeeper() || t.kept(p) || t[p.Parent].Name != BrokerName && p.supervised() {
			continue
		}
		s := Orphan{Keeper: p, Procs: t.below(p.Pid, children)}
		s.Procs = slices.DeleteFunc(s.Procs, Proc.dead)
		for _, c := range children[p.Pid] {
			if s.ID = sessionOf(c); isID(s.ID) {
				break
			}
			s.ID = ""
		}
		if k, taken := keepers[s.ID]; taken && k.IsZero() {
			continue // it may be this one, not yet recorded
		} else if taken {
			s.ID = "" // its processes say so, but that session has another keeper
		}
		found = append(found, s)
	}
	for i := range found {
		fill(found[i].Procs)
		one := []Proc{found[i].Keeper}
		fill(one)
		found[i].Keeper = one[0]
	}
	slices.SortFunc(found, func(a, b Orphan) int { return a.Keeper.Pid - b.Keeper.Pid })
	return found
}

// isKeeper tells a keeper from a process that is only called so: it leads a
// session, has one thread, and blocks every signal, so that fork.ReapSignal does
// no harm to anything else that looks like that. No process can make another
// one look so; one that does it to itself asks for the signal.
func (p Proc) isKeeper() bool {
	st, err := readStatus(p.Pid)
	return err == nil && !p.dead() && p.Session == p.Pid && p.Group == p.Pid &&
		st.uid == os.Geteuid() && st.threads == 1 && st.blocked == allBlocked &&
		(st.depth == 1 || st.depth == 2 && st.inner == 1) // the init of its session's PID namespace
}

// kept reports whether p is below another keeper, which answers for it.
func (t table) kept(p Proc) bool {
	for range len(t) { // a snapshot may hold a ring
		up, ok := t[p.Parent]
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

// supervised reports whether p's parent is the program that forked it, which
// still answers for its session: a keeper has its parent's arguments, for it
// executes nothing.
func (p Proc) supervised() bool {
	both := []Proc{p, {ProcID: ProcID{Pid: p.Parent}}}
	fill(both)
	return len(both[0].Argv) > 0 && slices.Equal(both[0].Argv, both[1].Argv)
}
