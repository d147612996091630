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

// WriteFile writes to a file that the user has named by a flag, once the command has
// ended, what there is to say of it. What the command has put there meanwhile is an
// error, if it is a symbolic link or a FIFO (fifo(7)) that nobody reads, and so is a
// link that it may have put above.
func (c *Command) WriteFile(flag, name, text string) error {
	return c.writeFile(flag, name, text, 0o600)
}

// writeFile writes a file for the user. A symbolic link is not followed: a command may
// have put it there, to have a file of the user's overwritten that it could not write
// itself. Nor is one among the directories above that leads out of where a command may
// write. The links of /dev and /proc, as /dev/stdout, are the system's. A FIFO that
// nobody reads is an error and nothing to wait for. Errors begin with the flag.
func (c *prepared) writeFile(flag, given, text string, mode fs.FileMode) error {
	if err := c.write(flag, given, text, mode); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

func (c *prepared) write(flag, given, text string, mode fs.FileMode) error {
	name, err := policy.Absolute(given)
	if err != nil {
		return err
	}
	open := os.OpenFile
	if system := strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/"); !system || strings.Contains(name, "/../") {
		open = safepath.OpenFile
		if name, err = c.pathOf(flag, name); err != nil {
			return err
		}
	}
	f, err := open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NONBLOCK, mode)
	if err == nil {
		_ = f.SetWriteDeadline(time.Now().Add(fileTime)) // only what can wait has one
		_, err = f.WriteString(text)
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

// fileTime is how long a pipe that is given for a file may stay full.
const fileTime = 100 * time.Millisecond

// pathOf is where an absolute path leads, but for its last name.
func (c *prepared) pathOf(flag, name string) (string, error) {
	above, base := filepath.Split(name)
	dir := c.host.Follow(above)
	to := filepath.Join(dir.Path, base)
	if err := c.planted(&dir); err != nil {
		return "", &Error{Code: CodePolicy, Hint: flag + " " + shell.Quote(to), Err: err}
	}
	return to, nil
}

// planted refuses a path with a link in it that a command may have put there, or another
// user.
func (c *prepared) planted(p *policy.Path) error {
	link, who := c.host.PlantedLink(p), "a command may have"
	if link == "" && c.resolved != nil {
		link = c.resolved.PlantedLink(p)
	}
	if link == "" {
		link, who = foreignLink(p.Links), "another user has"
	}
	if link != "" {
		return fmt.Errorf("the link %s leads to %s, and %s put it there", link, p.Path, who)
	}
	return nil
}
