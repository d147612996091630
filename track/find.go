//go:build unix

package track

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// found is a session in the store.
type found struct {
	dir    *sessionDir
	record *Record // nil if the session has none that can be read
	holder Holder
	state  *os.File // nil if the session has none that can be read
	word   keeperWord
	damage error   // why a file that is there can't be read, or nil
	orphan *Orphan // not nil: there are no files, and all that is known is the keeper
}

// load reads a session. Each file counts by itself: what is wrong with one is
// noted, and the others are used. The error is fs.ErrNotExist for a session that
// is no more, or says that this process lacks what it takes to look.
func (o opened) load(id string) (*found, error) {
	f := &found{dir: o.session(id)}
	var recordErr, holderErr, stateErr error
	if f.state, stateErr = f.dir.openFile(stateFile); stateErr == nil {
		f.word = readState(f.state)
	}
	f.record, recordErr = f.dir.readRecord()
	f.holder, holderErr = f.dir.readHolder()
	var damage []error
	for _, err := range []error{recordErr, holderErr, stateErr} {
		if isShortage(err) {
			f.close()
			return nil, err
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			damage = append(damage, err)
		}
	}
	if f.damage = errors.Join(damage...); f.damage == nil && recordErr != nil && holderErr != nil && stateErr != nil && !o.has(id) {
		return nil, stateErr
	}
	if f.holder.Command.IsZero() && f.word.known {
		f.holder.Command.Pid = int(f.word.state.CommandPid)
	}
	return f, nil
}

// isShortage reports whether err is about this process or the machine, and says
// nothing of the file.
func isShortage(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}

func (f *found) close() {
	if f.state != nil {
		_ = f.state.Close()
		f.state = nil
	}
}

// refresh asks for the keeper's word again, and for who holds the session if that
// was not known. It reports whether the session is still there.
func (f *found) refresh() bool {
	if f.holder.Tracker == "" && f.damage == nil {
		if h, err := f.dir.readHolder(); err == nil {
			f.holder = h
		}
	}
	if f.state != nil {
		f.word = readState(f.state)
		return true
	}
	if st, err := f.dir.openFile(stateFile); err == nil {
		f.word = readState(st)
		_ = st.Close()
		return true
	}
	return f.dir.in.has(f.dir.id)
}

// name is the session's name, if it has one.
func (f *found) name() string {
	if f.record == nil {
		return ""
	}
	return f.record.Name
}

// tracker is the session's tracker.
func (f *found) tracker() Kind { return f.holder.Tracker }

// confined reports whether the command confined itself.
func (f *found) confined() bool { return f.record != nil && !f.record.TrackOnly }

// empty reports whether the keeper said that nothing is left.
func (f *found) empty() bool {
	return f.word.known && f.word.state.Phase == fork.PhaseEmpty
}

// each opens all places that exist. Places that can't be used are errors of
// their own: one of them may hold what somebody looks for.
func (s *Store) each(do func(o opened) error) error {
	var errs []error
	inside := os.Getenv(SessionEnv) != ""
	for _, p := range s.places {
		o, err := p.open(false)
		switch {
		case err == nil:
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
			continue
		case p.foreign():
			continue
		case errors.Is(err, fs.ErrPermission) && inside && len(s.places) > 1:
			continue // a command may not look into its user's store
		default:
			errs = append(errs, err)
			continue
		}
		err = do(o)
		o.close()
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// foreign reports whether the place is somebody else's, who came first where
// everybody can write. No session of this user was ever stored there.
func (p place) foreign() bool {
	var st unix.Stat_t
	return p.nofollow && unix.Lstat(p.parent, &st) == nil && int(st.Uid) != os.Geteuid()
}

// Find gives the id of the session that ref means: an id, a name, or the
// beginning of an id that no other has. The error is ErrNotFound or an
// *AmbiguousError.
func (s *Store) Find(ref string) (string, error) {
	var ids []string
	named := ""
	whole := isID(ref)
	err := s.each(func(o opened) error {
		if whole { // no need to list them all
			if o.has(ref) {
				ids = append(ids, ref)
			}
			return nil
		}
		if CheckName(ref) == nil {
			if id, err := o.lookupName(ref); err == nil && o.has(id) {
				named = cmp.Or(named, id)
				return nil
			}
		}
		all, err := o.ids()
		ids = append(ids, all...)
		return err
	})
	if named != "" {
		return named, nil
	}
	id, merr := matchRef(ref, ids)
	if !errors.Is(merr, ErrNotFound) {
		return id, merr
	}
	if ids, serr := s.orphanIDs(); serr == nil && len(ids) > 0 {
		id, merr = matchRef(ref, ids)
	}
	if merr != nil && err != nil {
		return "", errors.Join(merr, err)
	}
	return id, merr
}

// with finds a session and calls do while it is open.
func (s *Store) with(id string, do func(f *found) error) error {
	seen := false
	var answer error
	err := s.each(func(o opened) error {
		if seen {
			return nil
		}
		f, err := o.load(id)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		seen = true
		if err != nil {
			answer = err
			return nil
		}
		defer f.close()
		answer = do(f)
		return nil
	})
	switch {
	case seen:
		return answer // whatever other places are like
	case err != nil:
		return err
	}
	return s.withOrphan(id, do)
}

// isNotExist reports whether a file, process or session is no more.
func isNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, ErrNotFound)
}
