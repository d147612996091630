package track

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// found is a session in the store.
type found struct {
	dir    *sessionDir
	state  *os.File // nil if the session has none that can be read
	word   keeperWord
	damage error // why a file that is there can't be read, or nil
	orphan bool  // there are no files, and all that is known is the keeper

	record   Record
	recorded bool // there is a record that can be read; else only its ID is set
}

// keeperWord is what the state file tells.
type keeperWord struct {
	state  fork.KeeperState
	known  bool // a keeper that started something wrote into it
	failed bool // one that did not
	locked bool // the supervisor or the keeper lives
}

// empty reports whether the keeper said that nothing is left.
func (w keeperWord) empty() bool { return w.known && w.state.Phase == fork.PhaseEmpty }

// readWord reads what the keeper wrote and leaves the lock alone.
func readWord(f *os.File) keeperWord {
	s, err := fork.ReadKeeperState(f)
	failed := s.Phase == fork.PhaseFailed
	return keeperWord{state: s, known: err == nil && !failed, failed: failed}
}

// readState reads what the keeper wrote, from an open state file, which stays
// readable when the session is removed meanwhile; nil if somebody removed that. f
// must not be the file that the supervisor holds the lock with: asking would give
// it up. For that one there is readWord.
func readState(f *os.File) keeperWord {
	if f == nil {
		return keeperWord{}
	}
	w := readWord(f)
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	w.locked = errors.Is(err, unix.EWOULDBLOCK)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	}
	return w
}

// load reads a session. Each file counts by itself: what is wrong with one is
// noted, and the others are used. The error is fs.ErrNotExist for a session that
// is no more, or says that this process lacks what it takes to look.
func (o opened) load(id string) (*found, error) {
	f := &found{dir: o.session(id)}
	var recordErr, stateErr error
	if f.state, stateErr = f.dir.openFile(stateFile); stateErr == nil {
		f.word = readState(f.state)
	}
	f.record, recordErr = f.dir.readRecord()
	f.recorded, f.record.ID = recordErr == nil, id
	missing := 0
	for _, err := range []error{recordErr, stateErr} {
		switch {
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
			f.close()
			return nil, err // of this process or the machine: it says nothing of the file
		case errors.Is(err, fs.ErrNotExist):
			missing++
		default:
			f.damage = errors.Join(f.damage, err)
		}
	}
	if missing == 2 && !o.has(id) {
		return nil, stateErr
	}
	if f.record.Command.IsZero() && f.word.known {
		f.record.Command.Pid = int(f.word.state.CommandPid)
	}
	return f, nil
}

func (f *found) close() {
	if f.state != nil {
		_ = f.state.Close()
		f.state = nil
	}
}

// refresh asks for the keeper's word again, and for the record, which was not there,
// perhaps, or named another keeper. It reports whether the session is still there.
func (f *found) refresh() bool {
	now, err := f.dir.in.load(f.dir.id)
	if err != nil {
		return !isNotExist(err)
	}
	if now.recorded {
		f.record, f.recorded = now.record, true
	}
	f.word = now.word
	now.close()
	return true
}
