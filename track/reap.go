package track

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// Life says how far a session is.
type Life string

// The lives of a session.
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
	ID     string
	Path   string // the common beginning of its files' names
	Err    error  // why some of its files can't be read; what is known is set all the same
	Record Record
	Holder Holder
	Life   Life
	Procs  []Proc // the living processes, without keeper and supervisor
}

// Guarantee says in one line what the session's tracker promises.
func (i *Info) Guarantee() string { return i.Holder.Tracker.Guarantee(!i.Record.TrackOnly) }

// List gives all sessions of the store, oldest first, with their processes. A
// session of which a file can't be read is listed with its Err and what is known
// otherwise. The error is about a place that could not be looked into; what was
// found elsewhere is returned all the same.
func (s *Store) List() ([]Info, error) {
	var all []Info
	err := s.each(func(o opened) error {
		ids, err := o.ids()
		var infos []Info
		var fs []*found
		for _, id := range ids {
			f, lerr := o.load(id)
			if isNotExist(lerr) {
				continue
			}
			if lerr != nil {
				err = errors.Join(err, fmt.Errorf("session %s: %w", id, lerr))
				continue
			}
			f.close() // or a long list would take more descriptors than there are
			infos, fs = append(infos, f.info()), append(fs, f)
		}
		if len(infos) > 0 {
			err = errors.Join(err, look(infos, fs))
		}
		all = append(all, slices.DeleteFunc(infos, func(i Info) bool { return i.Life == "" })...)
		return err
	})
	slices.SortFunc(all, func(a, b Info) int {
		if c := a.Record.Started.Compare(b.Record.Started); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, err
}

// Get gives one session with its processes.
func (s *Store) Get(ref string) (Info, error) {
	id, err := s.Find(ref)
	if err != nil {
		return Info{}, err
	}
	var i Info
	err = s.with(id, func(f *found) error {
		one := []Info{f.info()}
		err := look(one, []*found{f})
		i = one[0]
		return err
	})
	return i, err
}

func (f *found) info() Info {
	i := Info{ID: f.dir.id, Path: f.dir.path, Err: f.damage, Holder: f.holder}
	i.Record.ID = f.dir.id
	if f.record != nil {
		i.Record = *f.record
	}
	return i
}

// Reap kills all that is left of the session that ref means and removes it
// from the store. It needs no new process and no memory of the session but
// what is on disk. The report says what was done and whether it is certain
// that nothing is left; an error, that the session could not be dealt with at
// all. When ctx is done before the last process died, the report names the
// survivors; without a deadline Reap may wait for ever.
//
// A session whose files were removed, but whose keeper lives, is found by its
// keeper (see Orphans) and ended without proof.
//
// Two that reap the same session both succeed.
func (s *Store) Reap(ctx context.Context, ref string) (Report, error) {
	id, err := s.Find(ref)
	if err != nil {
		return Report{}, err
	}
	r := Report{ID: id}
	err = s.with(id, func(f *found) error {
		r.Name, r.Tracker = f.name(), f.holder.Tracker
		if f.record != nil {
			r.Temp = f.record.Temp
		}
		if err := f.reap(ctx, &r); err != nil || r.Left() {
			return err
		}
		return f.forget(&r)
	})
	return r, err
}

// forget removes the session from the store and its group from the system.
func (f *found) forget(r *Report) error {
	if f.orphan {
		r.Unproved = unprovedOrphan
		return nil
	}
	if err := f.cleanup(); err != nil {
		return err
	}
	if f.record == nil { // which had the name
		f.dir.in.dropNamesOf(f.dir.id)
	}
	if err := f.dir.remove(f.name()); err != nil {
		return err
	}
	r.Removed = true
	return nil
}

// Prune removes the sessions of which nothing is left: those that ended
// without their supervisor, and those from before the machine's last start.
// Of sessions whose keeper was killed, or was stopped and lost its supervisor,
// it kills what it can find first, as Reap does. What is alive stays. What goes
// wrong with one session does not stop the others.
func (s *Store) Prune(ctx context.Context) ([]Report, error) {
	infos, err := s.List()
	errs := []error{err}
	var rs []Report
	for _, i := range infos {
		if !i.Life.Stale() {
			continue
		}
		r, err := s.Reap(ctx, i.ID)
		switch {
		case isNotExist(err): // somebody else was faster
		case err != nil:
			errs = append(errs, fmt.Errorf("session %s: %w", i.ID, err))
		default:
			rs = append(rs, r)
		}
	}
	return rs, errors.Join(errs...)
}

// vouching says what a session's keeper is up to.
type vouching int

const (
	noKeeper    vouching = iota // there is none that lives
	keeperLives                 //
	keeperStuck                 // it is stopped, and nobody is left to wake it
)

// life decides how far a session is. here says that it belongs to this boot of
// this machine and to this PID namespace, procs that something of it was found.
func (f *found) life(here placing, k vouching, procs bool) Life {
	w, t, unheld := f.word, f.holder.Tracker, f.holder.Keeper.IsZero()
	switch {
	case here == rebooted, f.empty():
		return Ended
	case here == elsewhere:
		return Elsewhere
	case k == keeperStuck:
		return Lost
	case k == keeperLives && w.state.Phase == fork.PhaseKilling:
		return Ending
	case k == keeperLives && w.state.Phase == fork.PhaseKept:
		return Kept
	case k == keeperLives:
		return Running
	case !w.known && w.locked:
		return Starting
	case unheld && (w.locked || procs && t != ""): // by a keeper that was not found, or a supervisor; or a tracker without keeper
		return Running
	case unheld && procs:
		return Lost
	case !w.known && f.holder.Command.IsZero(), unheld && (t == Group || t == Fingerprint || t == Cgroup || t == Process):
		return Ended
	}
	return Lost
}

// placing says where a session belongs.
type placing int

const (
	present placing = iota
	rebooted
	elsewhere
)

// machine is where this process is: see proc.Machine.
type machine struct {
	host, boot string
	pidNS      uint64
}

func thisMachine() (m machine, err error) {
	m.host, m.boot, m.pidNS, err = proc.Machine()
	return m, err
}

// place compares a session with where this process is.
func (f *found) place(m machine) placing {
	switch r := f.record; {
	case r == nil:
		return present
	case r.Boot != m.boot && r.Host != m.host:
		return elsewhere
	case r.Boot != m.boot:
		return rebooted
	case r.PidNS != m.pidNS:
		return elsewhere
	}
	return present
}

// placed decides what needs no look at processes: sessions of another boot,
// machine or PID namespace, and those that ended with the keeper's word.
func (f *found) placed(r *Report) (done bool, err error) {
	m, err := thisMachine()
	if err != nil {
		return false, err
	}
	here := f.place(m)
	switch {
	case here == rebooted:
		r.prove(howReboot)
	case here == elsewhere && f.record.Boot != m.boot:
		return true, fmt.Errorf("session %s: %w: on the machine %.64q", f.dir.id, ErrElsewhere, f.record.Host)
	case f.empty():
		f.proveEmpty(r)
	case here == elsewhere:
		return true, fmt.Errorf("session %s: %w: in another PID namespace (a container?)", f.dir.id, ErrElsewhere)
	default:
		return false, nil
	}
	return true, nil
}

// proveEmpty reports that the keeper said that nothing is left.
func (f *found) proveEmpty(r *Report) {
	r.prove(howKeeper)
	if f.record == nil {
		r.How = howWord
	}
}

const (
	howKeeper = "the keeper, which adopts every orphan of the session, has no child left (wait4: ECHILD)"
	howWord   = "the keeper, which watched the whole session, recorded it before it ended"
	howReboot = "the machine was restarted since"
)
