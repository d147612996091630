package track

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// Life says how far a session is.
type Life string

const (
	Starting  Life = "starting"  // its supervisor has just begun it
	Running   Life = "running"   // the command runs
	Kept      Life = "kept"      // the command ended, what it left behind goes on
	Ending    Life = "ending"    // it is being killed
	Ended     Life = "ended"     // nothing is left of it but its record
	Lost      Life = "lost"      // its keeper was killed, or stopped for good: something may be left
	Elsewhere Life = "elsewhere" // it belongs to another machine or PID namespace
)

// Stale reports whether nothing runs that would vouch for the session.
func (l Life) Stale() bool { return l == Ended || l == Lost }

// Info is a session in the store and what is alive of it.
type Info struct {
	Record       // of one that can't be read as far as it is known
	Err    error // why some of its files can't be read; what is known is set all the same
	Life   Life
	Procs  []Proc // the living processes, without keeper and supervisor
}

// Guarantee says in one line what the session's tracker promises.
func (i *Info) Guarantee() string { return i.Record.Tracker.Guarantee(!i.Record.TrackOnly) }

// List gives all sessions of the store, oldest first, with their processes. A
// session of which a file can't be read is listed with its Err and what is known
// otherwise. The error is about a place that could not be looked into; what was
// found elsewhere is returned all the same.
func (s *Store) List() ([]Info, error) {
	all, _, err := s.list()
	return all, err
}

// list is List, and gives the snapshot in which the sessions were found.
func (s *Store) list() ([]Info, *view, error) {
	var loaded []*found
	err := s.each(func(p place, ids []string) (err error) {
		for _, id := range ids {
			f, lerr := p.load(id)
			switch {
			case lerr == nil:
				f.close() // or a long list would take more descriptors than there are
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

// Get gives one session with its processes.
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

// look finds out what lives of the sessions, with one snapshot for all. Those that
// went away meanwhile are left out.
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
		// The keeper's last word may have come after the first look.
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

// view is a snapshot in which sessions are found. That of one system has more.
type view struct {
	*proc.Table
	started map[string][]int // the processes that were started for a session: see members
}

func newView() (*view, error) {
	t, err := proc.Snapshot()
	return &view{Table: t}, err
}

// away says that a session is not of this run of this machine, which is its end, or
// not of this PID namespace; "" that it belongs here.
func (f *found) away(here proc.Machine) Life {
	switch r := f.record; {
	case f.empty():
		return Ended
	case !f.recorded():
		return ""
	case r.Boot != here.Boot && r.Host == here.Host:
		return Ended
	case r.Boot != here.Boot || r.PidNS != here.PidNS:
		return Elsewhere
	}
	return ""
}

// life decides how far a session is that belongs here and has not ended by the keeper's
// word. procs is how many processes of it were found.
func (v *view) life(f *found, procs int) Life {
	r := &f.record
	keeper, supervisor, unheld := v.Has(r.Keeper), v.Has(r.Self), r.Keeper.IsZero()
	// Its keeper has the lock, and /proc does not show it (hidepid).
	hidden := !unheld && f.locked && f.spoke() && !supervisor
	switch {
	case keeper && v.Procs[r.Keeper.Pid].Stopped() && f.recorded() && !supervisor && !r.Keep && f.word.Phase != fork.PhaseKept:
		return Lost // it was about to end the session
	case (keeper || hidden) && f.word.Phase == fork.PhaseKilling:
		return Ending
	case (keeper || hidden) && f.word.Phase == fork.PhaseKept:
		return Kept
	case keeper || hidden:
		return Running
	case unheld && r.Tracker != "" && procs > 0: // by a tracker without keeper
		if r.Keep && !r.Exec && !f.locked {
			return Kept
		}
		return Running
	case f.locked && !f.spoke():
		return Starting
	case unheld && f.locked: // by a keeper that was not found
		return Running
	case (unheld || !f.spoke()) && procs == 0:
		return Ended
	}
	return Lost
}

// BrokerName is what the kernel calls a program that goes on to answer for a
// session which it has let go of: its keeper has only the record.
const BrokerName = "zsbx-broker"

// Survey is List, and looks for orphans: keepers of this user, in this PID namespace,
// that outlived the program that forked them, and that no session of the store accounts
// for. The record was removed by hand, or lies in another store. Of each there is the
// session as the environment of its processes names it, "" if none does, the arguments
// of the program that began it, the keeper, and the living processes below that. Reap
// takes the ID; fork.ReapSignal to the keeper does the same.
//
// Within a session there are never any: a command can't read its user's store. So it is
// on macOS, which has no keepers.
func (s *Store) Survey() (all, orphans []Info, err error) {
	all, v, err := s.list()
	if err != nil || os.Getenv(SessionEnv) != "" {
		return all, nil, err // what can't be read may account for them
	}
	if orphans = v.orphans(all); len(orphans) == 0 {
		return all, nil, nil
	}
	now, v, err := s.list() // some may have begun, or ended, before the list was made
	if err != nil {
		return all, nil, err
	}
	return now, slices.DeleteFunc(v.orphans(now), func(o Info) bool {
		return !slices.ContainsFunc(orphans, func(before Info) bool { return before.Record.Keeper == o.Record.Keeper })
	}), nil
}
