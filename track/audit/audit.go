package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/object"
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

// mostLine is how long a line may be that Read takes, in bytes: more than Append writes.
const mostLine = 1 << 20

// Append writes one line, by one write(2) at the end of the day's file, so that
// concurrent runs don't mix theirs. The directory has to exist; no link is followed.
// The file is made where it is missing, for the user alone. The first line of a day
// removes the files that are older than keep days; 0 keeps all. The error says what
// is wrong with the directory, with the file, or with the disk.
//
// It is part of every start: os.File would begin to poll, which wakes a thread.
func Append(dir string, keep int, l *Line) error {
	in, err := openDir(dir)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	day := l.Time.UTC()
	fd, st, err := open(in, day.Format(time.DateOnly)+".jsonl", unix.O_RDWR|unix.O_APPEND|unix.O_CREAT|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Geteuid() || st.Nlink != 1 {
		return errors.New("the day's file is not a regular file of this user with one name")
	}
	if st.Mode&0o777 != 0o600 { // whatever the umask is, and was
		if err := unix.Fchmod(fd, 0o600); err != nil {
			return err
		}
	}
	if st.Size == 0 && keep > 0 {
		oldest := day.AddDate(0, 0, -keep).Format(time.DateOnly)
		for _, name := range days(dir) {
			if name < oldest {
				_ = unix.Unlinkat(in, name, 0)
			}
		}
	}
	b := append(object.Of(l), '\n')
	var last [1]byte
	if n, _ := unix.Pread(fd, last[:], st.Size-1); n == 1 && last[0] != '\n' {
		b = append([]byte{'\n'}, b...) // a full disk cut the line before
	}
	n, err := unix.Write(fd, b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// openDir opens the directory of a log, which nobody else may change.
func openDir(dir string) (fd int, err error) {
	fd, st, err := open(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil && (int(st.Uid) != os.Geteuid() && st.Uid != 0 || st.Mode&0o022 != 0) {
		unix.Close(fd)
		err = fmt.Errorf("%s can be changed by others", dir)
	}
	return fd, err
}

// open opens what is no link.
func open(in int, name string, flags int) (fd int, st unix.Stat_t, err error) {
	fd, err = unix.Openat(in, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == nil {
		if err = unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		err = &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, st, err
}

// days are the names of a log's files, in their order.
func days(dir string) []string {
	names, _ := fs.Glob(os.DirFS(dir), "[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9].jsonl")
	return names
}

// Read gives the lines of a log to each, in the order they were written, and
// how many could not be read.
func Read(dir string, each func(*Line)) (damaged int, err error) {
	in, err := openDir(dir)
	if err != nil {
		return 0, err
	}
	defer unix.Close(in)
	for _, name := range days(dir) {
		fd, _, e := open(in, name, unix.O_RDONLY|unix.O_NONBLOCK)
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		f := os.NewFile(uintptr(fd), name)
		b := bufio.NewScanner(f)
		b.Buffer(nil, mostLine)
		for b.Scan() {
			text, l := b.Bytes(), &Line{}
			if json.Unmarshal(text, l) == nil && l.Session != "" && (l.Began != nil || l.Ended != nil) {
				each(l)
			} else if len(text) > 0 {
				damaged++
			}
		}
		f.Close()
		err = errors.Join(err, b.Err())
	}
	return damaged, err
}
