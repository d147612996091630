package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/track/internal/object"
)

// The events of a session. One that replaces the supervisor has no end; nor has
// one whose supervisor was killed.
const (
	Start = "start" // before the command is started; again when it has to be planned anew
	End   = "end"
)

// Line is a line of the log. What is empty is left out.
type Line struct {
	Event   string    `json:"event"`
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	*Began
	*Ended
}

// Began is what the line of a start tells.
type Began struct {
	Name       string   `json:"name,omitempty"`
	Dir        string   `json:"dir"`
	Command    []string `json:"command"` // as Redact leaves it
	CommandCut bool     `json:"command_cut,omitempty"`
	Policy     string   `json:"policy,omitempty"` // hash of what was asked for
	UID        int      `json:"uid"`
	TrackOnly  bool     `json:"track_only,omitempty"` // no limits
	InPlace    bool     `json:"in_place,omitempty"`   // the command replaces the supervisor: no end is written
	Layers     []string `json:"layers"`               // what enforces the policy: the command runs only when the kernel took all of it
	Gaps       []string `json:"gaps"`                 // accepted promises that can't be kept: "name (by whom)"
}

// Ended is what the line of an end tells.
type Ended struct {
	Status      int    `json:"status"`           // zsbx's exit status
	Error       string `json:"error,omitempty"`  // why the command did not run, or what failed after it
	Signal      int    `json:"signal,omitempty"` // that ended the command
	TimedOut    bool   `json:"timed_out,omitempty"`
	DurationMS  int64  `json:"duration_ms"`            // by a clock that never goes back
	OutputBytes int64  `json:"output_bytes,omitempty"` // where zsbx carried the output
	Refusals    int    `json:"refusals,omitempty"`     // what the command was refused, as far as that was recorded
	Killed      int    `json:"ended"`                  // processes that were ended with the session
	Kept        bool   `json:"kept,omitempty"`         // some were left running
}

const (
	days     = "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9].jsonl" // names of files
	mostLine = 1 << 20                                           // how long a line may be that Read takes, in bytes: more than Append writes
)

// Append writes one line, by one write(2) at the end of the day's file, so that
// concurrent runs don't mix theirs. The directory and the file are made where
// they are missing, for the user alone. The first line of a day removes the
// files that are older than keep days; 0 keeps all. The error says what is wrong
// with the directory, with the file, or with the disk.
func Append(dir string, keep int, l *Line) error {
	root, err := openDir(dir, true)
	if err != nil {
		return err
	}
	defer root.Close()
	name := l.Time.UTC().Format(time.DateOnly) + ".jsonl"
	f, err := root.OpenFile(name, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || !st.Mode().IsRegular() || int(sys.Uid) != os.Geteuid() || sys.Nlink != 1 {
		return fmt.Errorf("%s is not a regular file of this user with one name", filepath.Join(dir, name))
	}
	if err := f.Chmod(0o600); err != nil { // whatever the umask is, and was
		return err
	}
	b, last := append(object.Of(l), '\n'), []byte{'\n'}
	if st.Size() == 0 && keep > 0 {
		old, _ := fs.Glob(root.FS(), days)
		for _, other := range old {
			if other < l.Time.UTC().AddDate(0, 0, -keep).Format(time.DateOnly) {
				root.Remove(other)
			}
		}
	}
	if f.ReadAt(last, st.Size()-1); last[0] != '\n' { // a full disk cut the last one
		b = slices.Insert(b, 0, '\n')
	}
	_, err = f.Write(b)
	return err
}

// Check refuses a directory that another user's link leads to.
func Check(dir string) error {
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if st, err := os.Lstat(at); err == nil && st.Mode()&fs.ModeSymlink != 0 && !trusted(st) {
			return fmt.Errorf("%s is another user's link", at)
		}
	}
	return nil
}

// openDir opens the directory of a log, which nobody else may change.
func openDir(dir string, create bool) (*os.Root, error) {
	if err := Check(dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir + "/.") // a FIFO would block
	if errors.Is(err, fs.ErrNotExist) && create {
		if err = os.MkdirAll(dir, 0o700); err == nil {
			root, err = os.OpenRoot(dir + "/.")
		}
	}
	if err != nil {
		return nil, err
	}
	if st, err := root.Stat("."); err != nil || !trusted(st) || st.Mode().Perm()&0o022 != 0 {
		root.Close()
		return nil, errors.Join(err, fmt.Errorf("%s can be changed by others", dir))
	}
	return root, nil
}

// trusted tells what belongs to this user or to root.
func trusted(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && (int(sys.Uid) == os.Geteuid() || sys.Uid == 0)
}

// Read gives the lines of a log to each, in the order they were written, and
// how many could not be read.
func Read(dir string, each func(*Line)) (damaged int, err error) {
	root, err := openDir(dir, false)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	names, err := fs.Glob(root.FS(), days)
	for _, name := range names {
		f, e := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		b := bufio.NewScanner(f)
		b.Buffer(nil, mostLine)
		for b.Scan() {
			l := &Line{}
			if json.Unmarshal(b.Bytes(), l) == nil && l.Session != "" && (l.Began != nil || l.Ended != nil) {
				each(l)
			} else if len(b.Bytes()) > 0 {
				damaged++
			}
		}
		f.Close()
		err = errors.Join(err, b.Err())
	}
	return damaged, err
}
