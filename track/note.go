package track

import (
	"fmt"
	"hash/fnv"
	"io"
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
	Lives bool // the session's keeper lives, so the command may still run
	Temp  bool // it lies in the directory for temporary files, where a command may have written it

	Status syscall.WaitStatus // how the command ended; SIGKILL if that is not known
	Killed int                // processes that were ended with the session, as far as it is known

	file *os.File
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
	if s.note == nil {
		name := filepath.Join(s.in.dir(), noteName(s.record.ID, dir))
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return &os.PathError{Op: "create", Path: name, Err: err}
		}
		_ = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) // without locks nobody takes the note before reap
		s.note = os.NewFile(uintptr(fd), name)
	}
	err := s.note.Truncate(0)
	if err == nil {
		_, err = s.note.WriteAt(text, 0)
	}
	if err != nil {
		s.Told()
	}
	return err
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

// Notes returns the notes of sessions whose command ran in dir, or of all for "". Those whose
// supervisor lives, or that another process is telling, are left out, and so is what can't be
// read.
func (s *Store) Notes(dir string) (out []*Note) {
	for _, p := range s.places {
		if p.check(false) != nil {
			continue
		}
		entries, _ := os.ReadDir(p.dir())
		for _, e := range entries {
			id, rest, _ := strings.Cut(e.Name(), ".")
			if !isID(id) || !strings.HasSuffix(rest, noteFile) || dir != "" && e.Name() != noteName(id, dir) {
				continue
			}
			if n := p.note(e.Name(), id); n != nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// NotesOf returns the notes of one session.
func (s *Store) NotesOf(id string) []*Note {
	all := s.Notes("")
	return slices.DeleteFunc(all, func(n *Note) bool {
		other := n.ID != id
		if other {
			n.Close()
		}
		return other
	})
}

// note opens a note and takes its lock, or returns nil.
func (p place) note(name, id string) *Note {
	path := filepath.Join(p.dir(), name)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	_ = unix.SetNonblock(fd, false) // else Go's runtime adds it to epoll(7), whose limit may be reached
	n := &Note{ID: id, Temp: p.nofollow, file: os.NewFile(uintptr(fd), path)}
	n.Status = syscall.WaitStatus(syscall.SIGKILL)
	var st unix.Stat_t
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 0 && private(path, &st, 0o022) == nil {
		n.Text, err = io.ReadAll(io.LimitReader(n.file, maxNote))
	}
	if err == nil && len(n.Text) == 0 { // the supervisor was killed before the command began
		_ = n.Remove()
	}
	if err != nil || len(n.Text) == 0 {
		n.Close()
		return nil
	}
	if f, err := p.load(id); err == nil {
		n.Lives = f.locked
		n.Killed = int(f.word.Killed)
		if f.word.Phase == fork.PhaseKept || f.empty() && f.spoke() {
			n.Status = syscall.WaitStatus(f.word.WaitStatus)
		}
		f.close()
	}
	return n
}

// Remove removes a note that was told.
func (n *Note) Remove() error { return os.Remove(n.file.Name()) }

// Close lets another process have the note.
func (n *Note) Close() { _ = n.file.Close() }
