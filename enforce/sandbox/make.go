package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/safepath"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/compose"
)

// makeDirs makes the directories that presets, policies and --create-missing want to
// be there, and reports whether there were any: Landlock can allow only what exists,
// and a tool that can't make its cache fails. What the command line names must be
// made. The rest is left alone where it can't be; the tool says so in its own words.
// Nothing is made by a link that a command or another user may have put there.
func (c *prepared) makeDirs() (made bool, err error) {
	for i := range c.resolved.Create {
		p := &c.resolved.Create[i]
		from := p.Rule.Origin
		mode := uint32(0o777)
		if from.BuiltIn() {
			mode = 0o700
		}
		why := c.planted(p)
		if why == nil {
			why = safepath.MakeDir(p.Path, mode, from.BuiltIn())
		}
		if made = made || why == nil; why == nil || from.BuiltIn() {
			continue
		}
		if strings.HasPrefix(from.Source, "--") {
			err = errors.Join(err, &Error{Code: CodePolicy, Err: fmt.Errorf("%s: %s was not made: %w", from, p.Path, why)})
			continue
		}
		c.warn(Warning{Text: fmt.Sprintf("%s: %s was not made: %v", from, p.Path, why)})
	}
	return made, err
}

// foreignLink is the first of some symbolic links that neither the user nor root
// has made, "" for none.
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

// makeCacheLinks makes the links and the copies in the project's own cache that
// presets want. A command may have put anything there: an os.Root never leads outside
// of it. What can't be made is left alone; the tool has a cold cache then.
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
		root.MkdirAll(path.Dir(l.Name), 0o700) // some tools want theirs to be there
		if !l.Copy {
			makeLink(root, l)
			continue
		}
		// What the command may not read it does not get, and no link counts that a
		// command may have put there.
		from := c.host.Follow(l.To)
		if r.PlantedLink(&from) == "" && r.Allowed(from.Path, policy.Read).Allowed {
			makeCopy(root, policy.CacheEntry{Name: l.Name, To: from.Path})
		}
	}
}

// makeLink makes one link. Where nothing is to lead to, the tool makes its own.
func makeLink(root *os.Root, l policy.CacheEntry) {
	old, err := root.Readlink(l.Name)
	_, missing := os.Stat(l.To)
	if err == nil {
		if old == l.To && missing == nil {
			return
		}
		root.Remove(l.Name) // it led to where the shared cache was before
	}
	if missing == nil {
		root.Symlink(l.To, l.Name)
	}
}

// maxCopied is the size in bytes up to which a file is copied.
const maxCopied = 16 << 20

// makeCopy copies one file, unless the copy was changed later, by the time that a
// command can't set. The file's path is canonical: a link that has just been put there
// is an error.
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
	if old, err := root.Lstat(l.Name); err == nil && old.Mode().IsRegular() && safepath.ChangeTime(old).After(st.ModTime()) {
		return
	}
	_ = compose.Replace(root, l.Name, io.LimitReader(in, maxCopied), 0o600, false)
}
