package supervise

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/safepath"
	"github.com/zsbx/zsbx/policy"
)

// makeMissing makes what the policy asks for. New directories change what it means.
func (c *prepared) makeMissing() error {
	made, err := c.makeDirs()
	if err == nil && made {
		err = c.resolve()
	}
	if err == nil {
		c.makeCacheLinks()
	}
	return err
}

// makeDirs makes the directories that presets, policies and --create-missing ask for, and
// reports whether it made any: Landlock can allow only what exists, and a tool that can't
// make its cache fails. It is an error if one that the command line names can't be made,
// and a warning for one of a policy. For one of a preset, the tool itself will complain.
// Nothing is made through a link that a command or another user may have put there.
func (c *prepared) makeDirs() (made bool, err error) {
	for i := range c.resolved.Create {
		p := &c.resolved.Create[i]
		from := p.Rule.Origin
		mode := uint32(0o777)
		if from.BuiltIn() {
			mode = 0o700
		}
		why := c.planted(p.Path, p.Links)
		if why == nil {
			why = safepath.MakeDir(p.Path, mode, from.BuiltIn())
		}
		if why == nil {
			made = true
			continue
		}
		if from.BuiltIn() {
			continue
		}
		if strings.HasPrefix(from.Source, "--") {
			why = fmt.Errorf("%s: %s was not made: %w", from, p.Path, why)
			err = errors.Join(err, &Error{Code: CodePolicy, Err: why})
			continue
		}
		c.warn(Warning{Text: fmt.Sprintf("%s: %s was not made: %v", from, p.Path, why)})
	}
	return made, err
}

// foreignLink returns the first of some symbolic links that neither the user nor root
// has made, or "".
func foreignLink(links []string) string {
	for _, link := range links {
		st, err := os.Lstat(link)
		if err != nil {
			return link
		}
		if !safepath.OwnedBy(st, 0) && !safepath.OwnedBy(st, os.Geteuid()) {
			return link
		}
	}
	return ""
}

// makeCacheLinks makes the links and the copies in the project's own cache that presets
// ask for. A command may have put anything there, so it uses an os.Root, which never leads
// outside. What can't be made is skipped; the tool has a cold cache then.
func (c *prepared) makeCacheLinks() {
	r := c.resolved
	if len(r.CacheLinks) == 0 {
		return
	}
	root, err := safepath.OpenRoot(r.Cache)
	if err != nil {
		return
	}
	defer root.Close()
	for _, l := range r.CacheLinks {
		root.MkdirAll(path.Dir(l.Name), 0o700) // some tools need it to exist
		// The command gets neither a link to what it may not read, at which many tools fail, nor
		// a copy of it. Copying follows no link that a command may have put there.
		from := c.host.Way(l.To)
		open := r.Allowed(from.Path, policy.Read).Allowed
		if !l.Copy {
			makeLink(root, l, open)
		} else if open && r.PlantedLink(from.Path, from.Links) == "" {
			makeCopy(root, policy.CacheEntry{Name: l.Name, To: from.Path})
		}
	}
}

// makeLink makes one link. If its target is missing, or not open to the command, the tool
// makes another cache.
func makeLink(root *os.Root, l policy.CacheEntry, open bool) {
	old, err := root.Readlink(l.Name)
	_, missing := os.Stat(l.To)
	open = open && missing == nil
	if err == nil {
		if old == l.To && open {
			return
		}
		root.Remove(l.Name) // it led to where the shared cache was before
	}
	if open {
		root.Symlink(l.To, l.Name)
	}
}

// maxCopied is the size in bytes up to which a file is copied.
const maxCopied = 16 << 20

// makeCopy copies one file, unless the copy is newer by its change time, which a command
// can't set. The file's path is canonical: a link that has just been put there is an
// error.
func makeCopy(root *os.Root, l policy.CacheEntry) {
	in, err := safepath.OpenFile(l.To, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > maxCopied {
		return
	}
	old, err := root.Lstat(l.Name)
	if err == nil && old.Mode().IsRegular() && safepath.ChangeTime(old).After(st.ModTime()) {
		return
	}
	_ = compose.Replace(root, l.Name, io.LimitReader(in, maxCopied), 0o600, false)
}

// WriteFile writes a report on the command, once that has ended, to a file that the user
// has named by a flag. It is an error if the command has put a symbolic link there, a
// FIFO (fifo(7)) that nobody reads, or a link among the directories above.
func (c *Command) WriteFile(flag, name, text string) error {
	return c.writeFile(flag, name, text, 0o600)
}

// writeFile writes a file for the user. A symbolic link is not followed: a command may
// have put it there, so that zsbx overwrites a file that the command could not write
// itself. In the directories above, a link that leads out of where a command may write is
// refused. Links in /dev and to descriptors, such as /dev/stdout, are the system's. A FIFO
// that nobody reads is an error; zsbx does not wait. Errors begin with the flag.
func (c *prepared) writeFile(flag, given, text string, mode fs.FileMode) error {
	if err := c.write(flag, given, text, mode); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

func (c *prepared) write(flag, given, text string, mode fs.FileMode) error {
	f, err := c.openFile(flag, given, os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_ = f.SetWriteDeadline(time.Now().Add(fileTime)) // only files that can block have one
	_, err = f.WriteString(text)
	return refusedFile(f.Name(), errors.Join(err, f.Close()))
}

// openFile opens a file of the user's to write to it: see writeFile.
func (c *prepared) openFile(flag, given string, how int, mode fs.FileMode) (*os.File, error) {
	name, err := host.Absolute(given)
	if err != nil {
		return nil, err
	}
	open := os.OpenFile
	dir := filepath.Dir(name)
	descriptor, _ := filepath.Match("/proc/*/fd", dir)
	if system := descriptor || dir == "/dev" || dir == "/dev/fd"; !system || strings.Contains(name, "/../") {
		open = safepath.OpenFile
		name, err = c.pathOf(flag, name)
		if err != nil {
			return nil, err
		}
	}
	f, err := open(name, os.O_WRONLY|os.O_CREATE|how|syscall.O_NONBLOCK, mode)
	return f, refusedFile(name, err)
}

// refusedFile says in plain words why a file can't be written to.
func refusedFile(name string, err error) error {
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

// fileTime is how long a pipe that is given as the file may stay full.
const fileTime = 100 * time.Millisecond

// pathOf returns where an absolute path leads. It does not follow the last name.
func (c *prepared) pathOf(flag, name string) (string, error) {
	above, base := filepath.Split(name)
	dir := c.host.Way(above)
	to := filepath.Join(dir.Path, base)
	if err := c.planted(dir.Path, dir.Links); err != nil {
		return "", &Error{Code: CodePolicy, Err: err} // a hint would have the user write where the link leads
	}
	return to, nil
}

// planted refuses a path to which links lead, if a command, or another user, may have put one
// of them there.
func (c *prepared) planted(to string, links []string) error {
	link := c.host.PlantedLink(to, links)
	who := "a command may have"
	if link == "" && c.resolved != nil {
		link = c.resolved.PlantedLink(to, links)
	}
	if link == "" {
		link = foreignLink(links)
		who = "another user has"
	}
	if link != "" {
		return fmt.Errorf("the link %s leads to %s, and %s put it there", link, to, who)
	}
	return nil
}
