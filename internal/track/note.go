package track

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
)

// A note is what a session's supervisor would tell at the end. It is kept next to the session's
// file, for a later process to tell if the supervisor is killed. The file is locked as long as
// the supervisor lives: the keeper closes it.

// Note is a note whose supervisor is gone. Nobody else has it until Close.
type Note struct {
	ID    string // of the session
	Text  []byte
	Lives bool  // the session's keeper lives, so the command may still run
	Temp  bool  // it lies in the directory for temporary files, where a command may have written it
	Err   error // why it can't be read and never will be; then there is no Text

	Status syscall.WaitStatus // how the command ended; SIGKILL if that is not known
	Killed int                // processes that were ended with the session, as far as it is known

	path string
	file *os.File // nil if it can't be opened
}

const (
	noteFile = ".untold"
	maxNote  = 64 << 20 // bytes
)

// noteName names the file of a note by the session and by the working directory, so that a run
// finds the notes of its own directory without opening others.
func noteName(id, dir string) string { return id + noteMark(dir) }

func noteMark(dir string) string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, dir)
	return fmt.Sprintf(".%016x%s", h.Sum64(), noteFile)
}

// Note stores a note about a session whose command runs in dir. Call it before the command
// begins; a second call replaces the note.
func (s *Session) Note(dir string, text []byte) error {
	var err error
	if s.note == nil {
		err = s.makeNote(dir)
	} else {
		err = s.note.Truncate(0)
	}
	if err == nil {
		_, err = s.note.WriteAt(text, 0)
	}
	if err != nil {
		s.Told()
	}
	return err
}

// makeNote makes the note's file. It is not truncated: ext4 would then write it to the disk when
// it is closed, although it has been removed.
func (s *Session) makeNote(dir string) error {
	name := filepath.Join(s.in.dir(), noteName(s.record.ID, dir))
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: name, Err: err}
	}
	_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // without locks nobody takes the note before reap
	s.note = os.NewFile(uintptr(fd), name)
	return nil
}

// LeaveNote replaces the note, and leaves it for other processes to tell.
func (s *Session) LeaveNote(dir string, text []byte) error {
	err := s.Note(dir, text)
	if s.note != nil {
		_ = s.note.Close()
		s.note = nil
	}
	return err
}

// Told removes the note, because this process has told all that it says.
func (s *Session) Told() {
	if s.note != nil {
		_ = os.Remove(s.note.Name())
		_ = s.note.Close()
		s.note = nil
	}
}

// Notes returns the notes of sessions whose command ran in dir. Those whose supervisor lives, or
// that another process is telling, are left out. The error says what can't be listed or read.
func (s *Store) Notes(dir string) ([]*Note, error) {
	mark := noteMark(dir)
	return s.notes(func(name string) bool { return strings.HasSuffix(name, mark) })
}

// NotesOf returns the notes of one session.
func (s *Store) NotesOf(session string) ([]*Note, error) {
	return s.notes(func(name string) bool { return strings.HasPrefix(name, session+".") })
}

// NotesBut returns the notes of all sessions but those with the given ids.
func (s *Store) NotesBut(ids []string) ([]*Note, error) {
	return s.notes(func(name string) bool {
		id, _, _ := strings.Cut(name, ".")
		return !slices.Contains(ids, id)
	})
}

// notes opens only those with a name that is wanted: nobody else can tell a note while it is open.
func (s *Store) notes(wanted func(name string) bool) (out []*Note, _ error) {
	err := s.listed(true, func(p storeDir, names []string) error {
		var errs []error
		for _, name := range names {
			id, _, _ := strings.Cut(name, ".")
			if !strings.HasSuffix(name, noteFile) || !wanted(name) || !isID(id) {
				continue
			}
			n, err := p.note(name, id)
			if n != nil {
				out = append(out, n)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	return out, err
}

// note opens a note and takes its lock. It returns nil if there is nothing to tell, or if another
// process does that.
func (p storeDir) note(name, id string) (*Note, error) {
	path := filepath.Join(p.dir(), name)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT { // it was told meanwhile
		return nil, nil
	}
	n := &Note{ID: id, Temp: p.nofollow, Status: syscall.WaitStatus(syscall.SIGKILL), path: path}
	if err != nil {
		err = &os.PathError{Op: "open", Path: path, Err: err}
		if fork.ShortageOf(err) != nil {
			return nil, err
		}
		n.Err = n.notOne(err)
		n.Lives = p.lives(id)
		return n, nil
	}
	_ = unix.SetNonblock(fd, false) // else Go's runtime adds it to epoll(7), whose limit may be reached
	n.file = os.NewFile(uintptr(fd), path)
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil { // somebody has it, or there are no locks
		n.Close()
		return nil, nil
	}
	tells, err := n.read()
	switch {
	case err == nil && n.Err != nil:
		n.Lives = p.lives(id)
	case err == nil && tells:
		tells, err = n.from(p)
	}
	if err != nil || !tells {
		n.Close()
		return nil, err
	}
	return n, nil
}

// read reads a note, and reports whether it may tell something.
func (n *Note) read() (tells bool, _ error) {
	var st unix.Stat_t
	err := unix.Fstat(int(n.file.Fd()), &st)
	switch {
	case err != nil:
		return false, &os.PathError{Op: "fstat", Path: n.path, Err: err}
	case st.Nlink == 0: // it was told meanwhile
		return false, nil
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		n.Err = n.notOne(nil)
		return true, nil
	}
	n.Err = private(n.path, &st, 0o022)
	if n.Err != nil {
		return true, nil
	}
	n.Text, err = io.ReadAll(io.LimitReader(n.file, maxNote))
	return err == nil, err
}

// notOne says what lies in the place of a note, or why the note can't be opened.
func (n *Note) notOne(err error) error {
	fi, looked := os.Lstat(n.path)
	switch {
	case looked != nil:
		return looked
	case !fi.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file (%s)", n.path, fi.Mode())
	}
	return err
}

// lives reports whether a session may live. It does if its file can't be read.
func (p storeDir) lives(id string) bool {
	f, err := p.load(id)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer f.close()
	return f.locked
}

// from fills in what the session's own file says. If that can't be read, the session may live.
// It reports whether there is something to tell. A note is empty if the supervisor was killed
// before the command began, or if the machine stopped before the note was on the disk.
func (n *Note) from(p storeDir) (tells bool, _ error) {
	f, err := p.load(n.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("session %s: %w", n.ID, err)
	}
	if f.file == nil {
		return false, fmt.Errorf("session %s: %w", n.ID, f.damage)
	}
	defer f.close()
	if len(n.Text) == 0 && f.recorded() && !f.spoke() {
		if !f.locked { // else the supervisor is about to write it
			_ = n.Remove()
		}
		return false, nil
	}
	n.Lives = f.locked
	n.Killed = int(f.word.Killed)
	if f.word.Phase == fork.PhaseKept || f.empty() && f.spoke() {
		n.Status = syscall.WaitStatus(f.word.WaitStatus)
	}
	return true, nil
}

// Remove removes a note that was told.
func (n *Note) Remove() error { return os.Remove(n.path) }

// Close lets another process have the note.
func (n *Note) Close() {
	if n.file != nil {
		_ = n.file.Close()
	}
}
