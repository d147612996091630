package track

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/track/internal/cgroup"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// recordVersion is the format that this package writes. A later version may
// add fields without raising it. It is raised when an old reader would
// misunderstand a new record.
const recordVersion = 1

const maxRecord = 64 << 10 // bytes; a longer file was not written by us

// ProcID identifies one process for as long as its machine is not restarted, and
// Proc is what can be seen of it from outside.
type (
	ProcID = proc.ID
	Proc   = proc.Process
)

// Holder is what holds a session.
type Holder struct {
	Tracker Kind          `json:"tracker"`          // "" as long as nothing was started
	Keeper  ProcID        `json:"keeper"`           // the keeper, zero without one
	Command ProcID        `json:"command"`          // the command's first process, zero below a keeper, which knows it
	Cgroup  *cgroup.Group `json:"cgroup,omitempty"` // the group that holds the session, or nil
}

// Record is what is stored about one session. It is data from a file: nothing
// in it is acted upon before it was compared with the living system.
type Record struct {
	Version int    `json:"version"`        // of the format
	ID      string `json:"id"`             // a UUID
	Name    string `json:"name,omitempty"` // given by the user, or ""

	proc.Machine // of the process that began the session, which is Self

	Argv      []string  `json:"argv"`           // the command; may be cut
	Dir       string    `json:"dir,omitempty"`  // the command's working directory
	Temp      string    `json:"temp,omitempty"` // Options.Temp
	Started   time.Time `json:"started"`
	Keep      bool      `json:"keep,omitempty"`       // what the command leaves behind is to go on running
	Exec      bool      `json:"exec,omitempty"`       // the supervisor became the command
	TrackOnly bool      `json:"track_only,omitempty"` // the command is not confined

	Holder
}

// check refuses what this package would never have written.
func (r *Record) check(id string) error {
	year := r.Started.UTC().Year()
	bad := r.Version < 1 || r.ID != id || year < 0 || year > 9999 || r.Name != "" && CheckName(r.Name) != nil
	bad = bad || r.Tracker != "" && r.Keeper.IsZero() && r.Command.Start == 0 // nothing holds the session
	bad = bad || r.Cgroup != nil && !r.Cgroup.Of(id)
	bad = bad || r.Keeper.Pid == 1 // which may be the others', in a container
	for _, p := range []ProcID{r.Self, r.Keeper, r.Command} {
		bad = bad || p.Pid < 0 || p.Pid > 1<<30 // negative ones are groups to kill(2)
	}
	if bad {
		return fmt.Errorf("not a record of session %s", id)
	}
	return nil
}

// CheckName reports whether name can be given to a session: 1 to 64 letters,
// digits, dots, underscores and hyphens, the first a letter or digit, and not
// the form of an id.
func CheckName(name string) error {
	const first, marks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", "._-"
	if name == "" || len(name) > 64 || strings.Trim(name, first+marks) != "" || strings.Contains(marks, name[:1]) {
		return fmt.Errorf("session name %.80q: 1 to 64 letters, digits, '.', '_' and '-' are allowed, the first a letter or digit", name)
	}
	if _, err := uuid.Parse(name); err == nil {
		return fmt.Errorf("session name %q: looks like a session id", name)
	}
	return nil
}

func isID(name string) bool { return fingerprint.Valid(name) }

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
