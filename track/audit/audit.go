package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	Killed      int    `json:"ended"`                  // processes that were ended with the session
	Kept        bool   `json:"kept,omitempty"`         // some were left running
}

// encode is the line with its newline; no value can have one.
func (l *Line) encode() []byte {
	o := object.New()
	o.Str("event", l.Event)
	o.Time("time", l.Time)
	o.Str("session", l.Session)
	if l.Began != nil {
		o.Optional("name", l.Name)
		o.Str("dir", l.Dir)
		o.Strs("command", l.Command)
		o.Flag("command_cut", l.CommandCut)
		o.Optional("policy", l.Policy)
		o.Num("uid", uint64(l.UID))
		o.Flag("track_only", l.TrackOnly)
		o.Flag("in_place", l.InPlace)
		o.Strs("layers", l.Layers)
		o.Strs("gaps", l.Gaps)
	}
	if l.Ended == nil {
		return append(o.End(), '\n')
	}
	o.Num("status", uint64(l.Status))
	o.Optional("error", l.Error)
	if l.Signal != 0 {
		o.Num("signal", uint64(l.Signal))
	}
	o.Flag("timed_out", l.TimedOut)
	o.Num("duration_ms", uint64(max(l.DurationMS, 0)))
	if l.OutputBytes != 0 {
		o.Num("output_bytes", uint64(l.OutputBytes))
	}
	o.Num("ended", uint64(l.Killed))
	o.Flag("kept", l.Kept)
	return append(o.End(), '\n')
}

const (
	extension = ".jsonl"
	// mostLine is how long a line may be that Read takes, in bytes: more than
	// Append writes.
	mostLine = 1 << 20
)

// Append writes one line, by one write(2) at the end of the day's file, so that
// concurrent runs don't mix theirs. The directory and the file are made where
// they are missing, for the user alone. The first line of a day removes the
// files that are older than keep days; 0 keeps all. The error says what is wrong with the
// directory, with the file, or with the disk.
func Append(dir string, keep int, l *Line) error {
	root, err := openDir(dir, true)
	if err != nil {
		return err
	}
	defer root.Close()
	name := l.Time.UTC().Format(time.DateOnly) + extension
	const flags = os.O_RDWR | os.O_APPEND | syscall.O_NONBLOCK
	f, err := root.OpenFile(name, flags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		if f, err = root.OpenFile(name, flags|os.O_CREATE|os.O_EXCL, 0o600); err == nil && keep > 0 {
			prune(root, l.Time.AddDate(0, 0, -keep))
		} else if errors.Is(err, fs.ErrExist) { // another run made it
			f, err = root.OpenFile(name, flags, 0)
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	sys, _ := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", filepath.Join(dir, name))
	case sys != nil && (int(sys.Uid) != os.Geteuid() || sys.Nlink != 1):
		return fmt.Errorf("%s belongs to another user, or has another name", filepath.Join(dir, name))
	case st.Mode().Perm() != 0o600:
		if err := f.Chmod(0o600); err != nil {
			return err
		}
	}
	b, last := l.encode(), []byte{'\n'}
	if st.Size() > 0 {
		if f.ReadAt(last, st.Size()-1); last[0] != '\n' { // a full disk cut the last one
			b = append([]byte{'\n'}, b...)
		}
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
	st, err := root.Stat(".")
	if err == nil && (!trusted(st) || st.Mode().Perm()&0o022 != 0) {
		err = fmt.Errorf("%s can be changed by others (mode %04o)", dir, st.Mode().Perm())
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

// trusted tells what belongs to this user or to root.
func trusted(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && (int(sys.Uid) == os.Geteuid() || sys.Uid == 0)
}

// days are the files of a log, the oldest first.
func days(root *os.Root) (names []string, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		day, ok := strings.CutSuffix(e.Name(), extension)
		if _, err := time.Parse(time.DateOnly, day); ok && err == nil {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// prune removes the files of the days before one. What can't be removed stays.
func prune(root *os.Root, before time.Time) {
	names, _ := days(root)
	for _, name := range names {
		if name < before.UTC().Format(time.DateOnly) {
			root.Remove(name)
		}
	}
}

// Read gives the lines of a log to each, in the order they were written, and
// how many could not be read.
func Read(dir string, each func(*Line)) (damaged int, err error) {
	root, err := openDir(dir, false)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	names, err := days(root)
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
