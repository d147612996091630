package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/safepath"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// writeID writes a session's id to Options.IDFile. A symbolic link is not
// followed: an earlier command may have put it there, to have a file of the
// user's overwritten that it could not write itself. Nor is one among the
// directories above that leads out of where a command may write. The links of
// /dev and /proc, as /dev/stdout, are the system's. A FIFO (fifo(7)) that nobody
// reads is an error and nothing to wait for.
func (c *prepared) writeID(id string) error {
	name, err := filepath.Abs(c.o.IDFile)
	if err != nil {
		return err
	}
	open := os.OpenFile
	if !strings.HasPrefix(name, "/dev/") && !strings.HasPrefix(name, "/proc/") {
		open = safepath.OpenFile
		if name, err = c.idPath(name); err != nil {
			return err
		}
	}
	f, err := open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, 0o644)
	if err == nil {
		_ = f.SetWriteDeadline(time.Now().Add(idFileTime)) // only what can wait has one
		_, err = f.WriteString(id + "\n")
		err = errors.Join(err, f.Close())
	}
	switch {
	case errors.Is(err, syscall.ELOOP):
		err = errors.New("is a symbolic link")
	case errors.Is(err, syscall.ENXIO):
		err = errors.New("nobody reads from it")
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errors.New("it is full, and nobody reads from it")
	default:
		return err
	}
	return &fs.PathError{Op: "write", Path: name, Err: err}
}

// idFileTime is how long a pipe that is given for the id may stay full.
const idFileTime = 100 * time.Millisecond

// idPath is where an absolute path leads, but for its last name.
func (c *prepared) idPath(name string) (string, error) {
	r := c.resolved
	if r == nil {
		r = &policy.Resolved{Dir: c.host.Dir, Home: c.host.Home}
	}
	dir := c.host.Follow(filepath.Dir(name))
	if link := r.PlantedLink(&dir); link != "" {
		return "", &Error{
			Code: CodePolicy, Hint: "--id-file " + shell.Quote(filepath.Join(dir.Path, filepath.Base(name))),
			Err: fmt.Errorf("the link %s leads to %s, and a command may have put it there", link, dir.Path),
		}
	}
	return filepath.Join(dir.Path, filepath.Base(name)), nil
}
