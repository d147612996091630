package track

import (
	"slices"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// look finds out what lives of the sessions, with one snapshot for all. One that
// went away meanwhile gets no Life.
func look(all []Info, fs []*found) error {
	here, err := thisMachine()
	if err != nil {
		return err
	}
	t, err := proc.Snapshot()
	if err != nil {
		return err
	}
	var m members // read only if a session has no keeper: it costs a file for each process
	for n, f := range fs {
		// The keeper's last word may have come after the first look.
		if !t.Has(f.holder.Keeper) && !f.refresh() {
			continue
		}
		keeper, place := noKeeper, f.place(here)
		if place == present {
			if m == nil && !f.empty() && (f.record == nil || !t.Has(f.holder.Keeper)) {
				m = readMembers(t)
			}
			f.findKeeper(t, m)
			keeper = f.vouching(t)
			all[n].Procs = f.procsIn(t, m)
			proc.Fill(all[n].Procs)
		}
		all[n].Holder = f.holder
		all[n].Life = f.life(place, keeper, len(all[n].Procs) > 0)
	}
	return nil
}

// procs lists the session's living processes.
func (f *found) procs() ([]Proc, error) {
	t, err := proc.Snapshot()
	if err != nil {
		return nil, err
	}
	ps := f.procsIn(t, nil)
	proc.Fill(ps)
	return ps, nil
}

// procsIn lists them from a snapshot. m may be nil.
func (f *found) procsIn(t *proc.Table, m members) []Proc {
	if f.empty() {
		return nil
	}
	lives := t.Has(f.holder.Keeper)
	var ps, more []Proc
	if f.record == nil || !lives { // which would tell whether the keeper is above or beside
		ps = f.targets().among(t, m)
	}
	if lives {
		more = t.Below(f.holder.Keeper.Pid)
	} else if g := f.openGroup(); g != nil {
		pids, _ := g.Pids()
		g.Close()
		for _, pid := range pids {
			if p, ok := t.Procs[pid]; ok {
				more = append(more, p)
			}
		}
	}
	for _, p := range more {
		if !p.Dead() && !slices.ContainsFunc(ps, func(o Proc) bool { return o.Pid == p.Pid }) {
			ps = append(ps, p)
		}
	}
	return ps
}
