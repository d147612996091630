package track

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/internal/object"
)

// found is a session in the store.
type found struct {
	in     place
	file   *os.File         // nil if it can't be read
	word   fork.KeeperState // what the keeper wrote, without a Phase if nothing
	locked bool             // the supervisor or the keeper lives
	damage error            // why the file, or what it says, can't be read, or nil
	orphan bool             // there is no file, and all that is known is the keeper
	own    bool             // it is that of the program that began it, which holds the lock
	record Record           // only its ID is set if there is none that can be read
}

// recorded reports whether there is a record that can be read.
func (f *found) recorded() bool { return f.record.Version != 0 }

// spoke reports whether a keeper that started something wrote so.
func (f *found) spoke() bool { return f.word.Phase > fork.PhaseFailed }

// empty reports whether the keeper said that nothing is left.
func (f *found) empty() bool { return f.word.Phase == fork.PhaseEmpty }

// listen reads what the keeper wrote, and looks at the lock, but not at the own one:
// asking would give it up. The file stays readable when the session is removed meanwhile.
func (f *found) listen() {
	if f.file == nil {
		return
	}
	if f.word, _ = fork.ReadKeeperState(f.file); f.own {
		return
	}
	err := unix.Flock(int(f.file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	f.locked = errors.Is(err, unix.EWOULDBLOCK)
	if err == nil {
		_ = unix.Flock(int(f.file.Fd()), unix.LOCK_UN)
	}
}

// load reads a session. What is wrong with its file is noted. The error is
// fs.ErrNotExist for a session that is no more, or says that this process lacks what
// it takes to look.
func (p place) load(id string) (_ *found, err error) {
	f := &found{in: p}
	if f.file, err = p.open(id); err == nil {
		f.listen()
		var b []byte
		b, err = io.ReadAll(io.NewSectionReader(f.file, fork.KeeperStateSize, maxRecord))
		if err == nil && len(b) > 0 { // else it was not stored yet
			f.record, err = parseRecord(b, id)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", p.file(id), err)
		}
	} else if errors.Is(err, fs.ErrNotExist) || fork.ShortageOf(err) != nil {
		return nil, err
	}
	f.record.ID, f.damage = id, err
	return f, nil
}

func (f *found) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// refresh reads the session again: its keeper may have spoken, or it was not recorded
// yet. It reports whether the session is still there.
func (f *found) refresh() bool {
	if f.orphan || f.own {
		return true
	}
	now, err := f.in.load(f.record.ID)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	f.close()
	*f = *now
	return true
}

// writeRecord stores what a session is behind the keeper's word. It is not synced: a
// machine that stops takes the session's processes with it, so the start need not wait
// for a disk. Of a longer record that was there before the end stays, behind the first
// JSON value.
func writeRecord(f *os.File, r *Record) error {
	_, err := f.WriteAt(object.Of(r), fork.KeeperStateSize)
	return err
}

// parseRecord reads the Record that b begins with, and checks it for session id. One that a
// later version wrote in a format of its own would be misread.
func parseRecord(b []byte, id string) (r Record, err error) {
	err = json.NewDecoder(bytes.NewReader(b)).Decode(&r) // goes on after a field of another type
	switch {
	case r.Version > recordVersion:
		err = fmt.Errorf("the session was recorded by a newer version of zsbx (format %d, this one reads %d)", r.Version, recordVersion)
	case err == nil:
		err = r.check(id)
	}
	if err != nil {
		return Record{}, err
	}
	return r, nil
}
