package track

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// Life is the state of a session.
type Life string

const (
	Starting  Life = "starting"  // its supervisor has just begun it
	Running   Life = "running"   // the command runs
	Kept      Life = "kept"      // the command ended, what it left behind keeps running
	Ending    Life = "ending"    // it is being killed
	Ended     Life = "ended"     // only its record is left
	Lost      Life = "lost"      // its keeper was killed, or stopped for good; something may be left
	Elsewhere Life = "elsewhere" // it belongs to another machine or PID namespace
)

// Stale reports whether no keeper or supervisor of the session runs.
func (l Life) Stale() bool { return l == Ended || l == Lost }

// Info is a session in the store, with its living processes.
type Info struct {
	Record       // as far as it is known
	Err    error // why some of its files can't be read; the rest is set all the same
	Life   Life
	Procs  []Proc // living processes, without keeper and supervisor
}

// Guarantee returns in one line what the session's tracker promises.
func (i *Info) Guarantee() string { return i.Record.Tracker.Guarantee(!i.Record.TrackOnly) }

// List returns all sessions of the store, oldest first, with their processes. A session whose
// file can't be read has an Err and what else is known. List returns an error if a directory could
// not be read, together with what was found elsewhere.
func (s *Store) List() ([]Info, error) {
	all, _, err := s.list()
	return all, err
}

// list is List, and also returns the snapshot of processes that it used.
func (s *Store) list() ([]Info, *view, error) {
	var loaded []*found
	err := s.each(func(p storeDir, ids []string) (err error) {
		for _, id := range ids {
			f, lerr := p.load(id)
			switch {
			case lerr == nil:
				f.close() // a long list could use up all descriptors
				loaded = append(loaded, f)
			case !errors.Is(lerr, fs.ErrNotExist):
				err = errors.Join(err, fmt.Errorf("session %s: %w", id, lerr))
			}
		}
		return err
	})
	all, v, lerr := look(loaded)
	slices.SortFunc(all, func(a, b Info) int {
		return cmp.Or(a.Record.Started.Compare(b.Record.Started), cmp.Compare(a.ID, b.ID))
	})
	return all, v, errors.Join(err, lerr)
}

// Get returns one session with its processes.
func (s *Store) Get(ref string) (Info, error) {
	f, err := s.find(ref)
	if err != nil {
		return Info{}, err
	}
	defer f.close()
	infos, _, err := look([]*found{f})
	if len(infos) == 0 {
		return Info{Record: f.record}, err
	}
	return infos[0], err
}

// look finds the living processes of sessions, with one snapshot for all. It leaves out
// sessions that were removed meanwhile.
func look(fs []*found) (infos []Info, _ *view, _ error) {
	v, err := newView()
	if err != nil || len(fs) == 0 {
		return nil, v, err
	}
	here, err := proc.Here()
	if err != nil {
		return nil, v, err
	}
	for _, f := range fs {
		// The keeper may have written its last word after the file was read.
		if !v.Has(f.record.Keeper) && !f.refresh() {
			continue
		}
		i := Info{Err: f.damage, Life: f.away(here)}
		if i.Life == "" {
			v.findKeeper(f)
			i.Procs = v.procs(f)
			i.Life = v.life(f, len(i.Procs))
			proc.Fill(i.Procs)
		}
		i.Record = f.record
		f.close()
		infos = append(infos, i)
	}
	return infos, v, nil
}

// view is a snapshot of processes in which sessions are found.
type view struct {
	*proc.Table
	started map[string][]int // processes by the session in their environment: see members
}

func newView() (*view, error) {
	t, err := proc.Snapshot()
	return &view{Table: t}, err
}

// away returns Ended if the keeper said so or the machine was restarted, Elsewhere if the
// session is on another machine or in another PID namespace, and "" if it belongs here.
func (f *found) away(here proc.Machine) Life {
	if f.empty() {
		return Ended
	}
	if !f.recorded() {
		return ""
	}
	r := &f.record
	restarted := r.Boot != here.Boot
	if restarted && r.Host == here.Host {
		return Ended
	}
	if restarted || r.PidNS != here.PidNS {
		return Elsewhere
	}
	return ""
}

// life returns the state of a session that belongs here and whose keeper did not say that
// nothing is left. procs is how many of its processes were found.
func (v *view) life(f *found, procs int) Life {
	keeper := f.record.Keeper
	switch {
	case keeper.IsZero():
		return f.lifeWithoutKeeper(procs)
	case v.Has(keeper) && v.stuck(f):
		return Lost
	case v.Has(keeper) || v.hidesKeeper(f):
		return f.lifeWithKeeper()
	}
	return f.lifeAfterKeeper(procs)
}

// stuck reports whether the keeper was stopped when it had to end the session, because the
// supervisor is gone.
func (v *view) stuck(f *found) bool {
	r := &f.record
	if !f.recorded() || r.Keep || f.word.Phase == fork.PhaseKept {
		return false
	}
	return v.Procs[r.Keeper.Pid].Stopped() && !v.Has(r.Supervisor)
}

// hidesKeeper reports whether /proc does not show the keeper (hidepid), which has the lock.
func (v *view) hidesKeeper(f *found) bool {
	return f.locked && f.spoke() && !v.Has(f.record.Supervisor)
}

// lifeWithKeeper returns the state of a session whose keeper lives.
func (f *found) lifeWithKeeper() Life {
	switch f.word.Phase {
	case fork.PhaseKilling:
		return Ending
	case fork.PhaseKept:
		return Kept
	}
	return Running
}

// lifeWithoutKeeper returns the state of a session for which no keeper is recorded.
func (f *found) lifeWithoutKeeper(procs int) Life {
	r := &f.record
	if r.Tracker != "" && procs > 0 {
		if r.Keep && !r.Exec && !f.locked {
			return Kept
		}
		return Running
	}
	switch {
	case f.locked && !f.spoke():
		return Starting
	case f.locked: // by a keeper that was not found
		return Running
	case procs == 0:
		return Ended
	}
	return Lost
}

// lifeAfterKeeper returns the state of a session whose keeper is recorded but gone.
func (f *found) lifeAfterKeeper(procs int) Life {
	switch {
	case f.spoke():
		return Lost
	case f.locked:
		return Starting
	case procs == 0:
		return Ended
	}
	return Lost
}

// BrokerName is the kernel's name for a program that keeps serving as broker for a session that
// it no longer supervises. Only the record accounts for that session's keeper.
const BrokerName = "zsbx-broker"

// Survey is List, and also looks for orphans: keepers of this user, in this PID namespace, that
// outlived the program that forked them and belong to no session in the store. Their record was
// removed by hand, or is in another store. An orphan's Info has the session's ID from the
// environment of its processes, or "", the arguments of the program that began it, the keeper,
// and the living processes below. Reap accepts the ID. Sending fork.ReapSignal to the keeper
// does the same.
//
// Inside a session it reports no orphans, since a command can't read its user's store. On macOS
// there are none, since it has no keepers.
func (s *Store) Survey() (all, orphans []Info, err error) {
	all, v, err := s.list()
	if err != nil || os.Getenv(SessionEnv) != "" {
		return all, nil, err // unreadable records may account for them
	}
	orphans = v.orphans(all)
	if len(orphans) == 0 {
		return all, nil, nil
	}
	now, v, err := s.list() // sessions may have begun or ended before the list was made
	if err != nil {
		return all, nil, err
	}
	known := func(o Info) bool {
		return slices.ContainsFunc(orphans, func(before Info) bool { return before.Record.Keeper == o.Record.Keeper })
	}
	both := slices.DeleteFunc(v.orphans(now), func(o Info) bool { return !known(o) })
	return now, both, nil
}
