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

	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/internal/track/cgroup"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// recordVersion is the format that this package writes. It is raised when an old reader would
// misunderstand a new record, but not for new fields.
const recordVersion = 1

const maxRecord = 64 << 10 // bytes; this package writes no longer file

// ProcID identifies one process until the machine restarts. Proc has what can be seen of it
// from outside.
type (
	ProcID = proc.ID
	Proc   = proc.Process
)

// Holder says what keeps a session's processes together.
type Holder struct {
	Tracker Kind          `json:"tracker"`          // "" until something was started
	Keeper  ProcID        `json:"keeper"`           // zero without a keeper
	Command ProcID        `json:"command"`          // the command's first process; zero below a keeper, which knows it
	Cgroup  *cgroup.Group `json:"cgroup,omitempty"` // the session's group, or nil
}

// Record is what is stored about one session. Since it comes from a file, it is compared with
// the running system before anything is done with it.
type Record struct {
	Version int    `json:"version"`        // of the format
	ID      string `json:"id"`             // a UUID
	Name    string `json:"name,omitempty"` // given by the user, or ""

	proc.Machine // of the process that began the session

	Argv      []string  `json:"argv"`           // the command's; may be cut
	Dir       string    `json:"dir,omitempty"`  // the command's working directory
	Temp      string    `json:"temp,omitempty"` // Options.Temp
	Started   time.Time `json:"started"`
	Keep      bool      `json:"keep,omitempty"`       // what the command leaves behind keeps running
	Exec      bool      `json:"exec,omitempty"`       // the supervisor became the command
	TrackOnly bool      `json:"track_only,omitempty"` // the command is not confined

	Holder
}

// check returns an error for a record that this package would never write.
func (r *Record) check(id string) error {
	year := r.Started.UTC().Year()
	bad := r.Version < 1 || r.ID != id || year < 0 || year > 9999 || r.Name != "" && CheckName(r.Name) != nil
	bad = bad || r.Tracker != "" && r.Keeper.IsZero() && r.Command.Start == 0 // it names no process
	bad = bad || r.Cgroup != nil && !r.Cgroup.Of(id)
	bad = bad || r.Keeper.Pid == 1 // in a container process 1 may have other processes below it
	for _, p := range []ProcID{r.Supervisor, r.Keeper, r.Command} {
		bad = bad || p.Pid < 0 || p.Pid > 1<<30 // for kill(2) negative numbers are groups
	}
	if bad {
		return fmt.Errorf("not a record of session %s", id)
	}
	return nil
}

// CheckName returns an error if a session can't have a name. It must be 1 to 64 letters,
// digits, dots, underscores and hyphens, begin with a letter or digit, and not look like an id.
func CheckName(name string) error {
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	const marks = "._-"
	if name == "" || len(name) > 64 || strings.Trim(name, first+marks) != "" || strings.Contains(marks, name[:1]) {
		return fmt.Errorf("session name %.80q: 1 to 64 letters, digits, '.', '_' and '-' are allowed, "+
			"the first a letter or digit", name)
	}
	if _, err := uuid.Parse(name); err == nil {
		return fmt.Errorf("session name %q: looks like a session id", name)
	}
	return nil
}

func isID(name string) bool { return fingerprint.Valid(name) }

// found is a session in the store.
type found struct {
	in          storeDir
	file        *os.File         // nil if it can't be opened
	word        fork.KeeperState // what the keeper wrote; without a Phase if nothing
	locked      bool             // the supervisor or the keeper has the lock, so it lives
	damage      error            // why the file or its content can't be read, or nil
	orphan      bool             // there is no file; only the keeper is known
	startedHere bool             // this process began it and has the lock
	record      Record           // only its ID is set if it can't be read
}

// recorded reports whether the record could be read.
func (f *found) recorded() bool { return f.record.Version != 0 }

// spoke reports whether a keeper wrote that it started something.
func (f *found) spoke() bool { return f.word.Phase > fork.PhaseFailed }

// empty reports whether the keeper said that nothing is left.
func (f *found) empty() bool { return f.word.Phase == fork.PhaseEmpty }

// listen reads what the keeper wrote, and tests the lock. It does not test this process's own
// lock, since that would release it. The file stays readable even if the session is removed
// meanwhile.
func (f *found) listen() {
	if f.file == nil {
		return
	}
	f.word, _ = fork.ReadKeeperState(f.file)
	if f.startedHere {
		return
	}
	err := unix.Flock(int(f.file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	f.locked = errors.Is(err, unix.EWOULDBLOCK)
	if err == nil {
		_ = unix.Flock(int(f.file.Fd()), unix.LOCK_UN)
	}
}

// load reads a session, and records in damage what is wrong with its file. It returns
// fs.ErrNotExist if the session is gone, or an error if this process is short of resources.
func (p storeDir) load(id string) (_ *found, err error) {
	f := &found{in: p}
	f.file, err = p.open(id)
	if errors.Is(err, fs.ErrNotExist) || err != nil && fork.ShortageOf(err) != nil {
		return nil, err
	}
	f.damage = err
	if err == nil {
		f.listen()
		if err := f.readRecord(id); err != nil {
			f.damage = fmt.Errorf("%s: %w", p.file(id), err)
		}
	}
	f.record.ID = id
	return f, nil
}

// readRecord reads the record from the session's file. It is empty if it was not stored yet.
func (f *found) readRecord(id string) error {
	b, err := io.ReadAll(io.NewSectionReader(f.file, fork.KeeperStateSize, maxRecord))
	if err == nil && len(b) > 0 {
		f.record, err = parseRecord(b, id)
	}
	return err
}

func (f *found) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// refresh reads the session again, since the keeper may have written, or the record may be new.
// It reports whether the session still exists.
func (f *found) refresh() bool {
	if f.orphan || f.startedHere {
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

// writeRecord writes a session's record after the keeper's word. It does not sync the file: if
// the machine stops, the session's processes are gone, too. The end of an earlier, longer
// record stays after the first JSON value.
func writeRecord(f *os.File, r *Record) error {
	_, err := f.WriteAt(object.Of(r), fork.KeeperStateSize)
	return err
}

// parseRecord parses the Record at the beginning of b, and checks it for session id. It refuses
// a later version's format, which it would misread.
func parseRecord(b []byte, id string) (r Record, err error) {
	err = json.NewDecoder(bytes.NewReader(b)).Decode(&r) // continues after a field of another type
	switch {
	case r.Version > recordVersion:
		err = fmt.Errorf("the session was recorded by a newer version of zsbx (format %d, this one reads %d)",
			r.Version, recordVersion)
	case err == nil:
		err = r.check(id)
	}
	if err != nil {
		return Record{}, err
	}
	return r, nil
}
