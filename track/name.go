package track

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// A name is a symbolic link to the id: making one is atomic, and looking one
// up reads no records.

func nameLink(name string) string { return "@" + name }

// claimName gives name to session id. The error is ErrNameTaken if a live session
// has it.
func (o opened) claimName(name, id string) error {
	for range 10 {
		err := unix.Symlinkat(id, o.fd, nameLink(name))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EEXIST) {
			return &os.PathError{Op: "symlink", Path: filepath.Join(o.path, nameLink(name)), Err: err}
		}
		if err := o.freeName(name); err != nil {
			return err
		}
	}
	return fmt.Errorf("session name %q: others keep taking it", name)
}

// freeName removes the link of a session that is no more. Two that do so at
// once must not remove each other's new link: hence the lock.
func (o opened) freeName(name string) error {
	lock, err := o.again()
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return &os.PathError{Op: "flock", Path: o.path, Err: err}
	}
	holder, err := o.lookupName(name)
	if errors.Is(err, unix.ENOENT) {
		return nil // gone meanwhile
	}
	if err == nil && o.alive(holder) {
		return fmt.Errorf("session name %q: %w %s", name, ErrNameTaken, holder)
	}
	return o.removeEntry(nameLink(name)) // what is no link to an id is no session's
}

// lookupName gives the id that name points to.
func (o opened) lookupName(name string) (string, error) {
	var b [64]byte
	n, err := unix.Readlinkat(o.fd, nameLink(name), b[:])
	if err != nil {
		return "", err
	}
	if id := string(b[:n]); isID(id) {
		return id, nil
	}
	return "", fmt.Errorf("session name %q: %w", name, ErrNotFound)
}

// dropName removes name if it still points to id.
func (o opened) dropName(name, id string) {
	if holder, err := o.lookupName(name); err == nil && holder == id {
		_ = unix.Unlinkat(o.fd, nameLink(name), 0)
	}
}

// dropNamesOf removes all names of a session whose record does not tell.
func (o opened) dropNamesOf(id string) {
	all, _ := o.names()
	for _, n := range all {
		if name, ok := strings.CutPrefix(n, "@"); ok {
			o.dropName(name, id)
		}
	}
}

// alive reports whether session id still has a supervisor or keeper, or is a
// command that replaced both.
func (o opened) alive(id string) bool {
	if h, err := o.session(id).readHolder(); err == nil && h.Keeper.IsZero() {
		if now, err := proc.Identify(h.Command.Pid); err == nil && now == h.Command {
			return true
		}
	}
	f, err := o.session(id).openFile(stateFile)
	if err != nil {
		return false
	}
	defer f.Close()
	return readState(f).locked
}
