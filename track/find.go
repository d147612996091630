//go:build unix

package track

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// found is a session in the store, with its files open, so that it stays
// readable when somebody removes it.
type found struct {
	dir    *sessionDir
	record *Record // nil if the session has none
	holder Holder
	state  *os.File // nil if somebody removed it
	word   keeperWord
	stray  *Stray // not nil: there are no files, and all that is known is the keeper
}

// load reads a session. Errors in its files are part of what was found: only a
// session that is no more is fs.ErrNotExist.
func (o opened) load(id string) (*found, error) {
	d := o.session(id)
	f := &found{dir: d}
	var gone, err error
	if f.state, gone = d.openFile(stateFile); gone == nil {
		f.word = readState(f.state)
	} else if !errors.Is(gone, fs.ErrNotExist) {
		return nil, gone
	}
	if f.record, err = d.readRecord(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.close()
		return nil, err
	}
	if gone != nil && err != nil {
		return nil, gone
	}
	if f.holder, err = d.readHolder(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.close()
		return nil, err
	}
	if f.holder.Command.IsZero() && f.word.known {
		f.holder.Command.Pid = int(f.word.state.CommandPid)
	}
	return f, nil
}

func (f *found) close() {
	if f.state != nil {
		_ = f.state.Close()
	}
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

// Find gives the id of the session that ref means: an id, a name, or the
// beginning of an id that no other has. The error is ErrNotFound or an
// *AmbiguousError.
func (s *Store) Find(ref string) (string, error) {
	var ids []string
	named := ""
	err := s.each(func(o opened) error {
		all, err := o.ids()
		ids = append(ids, all...)
		if CheckName(ref) == nil {
			if id, err := o.lookupName(ref); err == nil && slices.Contains(all, id) {
				named = cmp.Or(named, id)
			}
		}
		return err
	})
	if named != "" {
		return named, nil
	}
	id, merr := matchRef(ref, ids)
	if !errors.Is(merr, ErrNotFound) {
		return id, merr
	}
	if ids, serr := s.strayIDs(); serr == nil && len(ids) > 0 {
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
	return s.withStray(id, do)
}

// isNotExist reports whether a file, process or session is no more.
func isNotExist(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, ErrNotFound)
}
