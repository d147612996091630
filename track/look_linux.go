package track

import (
	"os"
	"slices"

	"github.com/zsbx/zsbx/enforce/fork"
)

// look finds out what lives of the sessions, with one snapshot for all. One that
// went away meanwhile gets no Life.
func look(all []Info, fs []*found) error {
	host, boot, ns, err := machine()
	if err != nil {
		return err
	}
	t, err := readTable()
	if err != nil {
		return err
	}
	children := t.children()
	var m members // read only if a session has no keeper: it costs a file for each process
	for n, f := range fs {
		here := f.place(host, boot, ns)
		// The keeper's last word may have come after the first look.
		if !t.has(f.holder.Keeper) && !f.refresh() {
			continue
		}
		all[n].Holder = f.holder
		keeper := noKeeper
		if here == present {
			if m == nil && !f.empty() && (f.record == nil || !t.has(f.holder.Keeper)) {
				m = readMembers(t)
			}
			if k, ok := f.keeperIn(t, m); ok && f.holder.Keeper.IsZero() {
				f.holder.Keeper, all[n].Holder.Keeper = k.ProcID, k.ProcID
			}
			keeper = f.vouching(t)
			all[n].Procs = f.procsIn(t, children, m)
			fill(all[n].Procs)
		}
		all[n].Life = life(f, here, keeper, len(all[n].Procs) > 0)
	}
	return nil
}

// vouching looks at the session's keeper. A stopped one whose supervisor is gone
// was about to end the session, unless that is to be kept.
func (f *found) vouching(t table) vouching {
	switch k := f.holder.Keeper; {
	case !t.has(k):
		return noKeeper
	case f.record == nil || f.record.Keep || f.word.state.Phase == fork.PhaseKept:
	case !t[k.Pid].running() && !t.has(f.record.Supervisor):
		return keeperStuck
	}
	return keeperLives
}

// keeperIn looks for the keeper of a session of which no file names it: by what
// runs right below it, the process that the keeper wrote down as the command, or
// one that was started with the session's id. A process can make that look so for
// the keeper of its own session, and for no other.
func (f *found) keeperIn(t table, m members) (Proc, bool) {
	if !f.holder.Keeper.IsZero() || f.empty() {
		return Proc{}, false
	}
	below := m[f.dir.id]
	if c := int(f.word.state.CommandPid); c > 1 && sessionOf(c) == "" {
		below = append(slices.Clone(below), c)
	}
	for _, pid := range below {
		if k, ok := t[t[pid].Parent]; ok && k.Name == keeperName && k.isKeeper() {
			return k, true
		}
	}
	return Proc{}, false
}

// targets says how to tell the session's processes without a keeper.
func (f *found) targets() targets {
	g := targets{id: f.dir.id, not: os.Getpid(), command: f.holder.Command}
	if f.record != nil {
		g.since = f.record.Supervisor.Start
	}
	// The record's word is not enough: where a command could write one, it
	// could name the group of the user's shell. The leader's own environment
	// must say the same.
	if c := f.holder.Command; f.holder.Tracker == Group && c.Start != 0 && sessionOf(c.Pid) == f.dir.id {
		g.group = c.Pid
		g.since = max(g.since, c.Start)
	}
	return g
}

// procs lists the session's living processes.
func (f *found) procs() ([]Proc, error) {
	t, err := readTable()
	if err != nil {
		return nil, err
	}
	ps := f.procsIn(t, t.children(), nil)
	fill(ps)
	return ps, nil
}

// procsIn lists them from a snapshot. m may be nil.
func (f *found) procsIn(t table, children map[int][]int, m members) []Proc {
	if f.empty() {
		return nil
	}
	if !t.has(f.holder.Keeper) {
		return f.addGroup(f.targets().among(t, children, m), t)
	}
	var ps []Proc
	if f.record == nil { // which would tell whether the keeper is above or beside
		ps = f.targets().among(t, children, m)
	}
	for _, p := range t.below(f.holder.Keeper.Pid, children) {
		if !p.dead() && !slices.ContainsFunc(ps, func(o Proc) bool { return o.Pid == p.Pid }) {
			ps = append(ps, p)
		}
	}
	return ps
}
