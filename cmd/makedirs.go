package cmd

import (
	"errors"
	"path/filepath"

	"github.com/zsbx/zsbx/policy"
)

// makeDirs makes the directories that presets and policies want to be there,
// such as a build cache, and resolves again when there were any: Landlock can
// allow only what exists, and a tool that can't make its cache fails. One that
// can't be made is left alone; the tool says so in its own words. Nothing is
// made by a link that a command may have put there.
func (a *app) makeDirs(c *composed, r *policy.Resolved) (*policy.Resolved, error) {
	made := false
	for i := range r.Create {
		p := &r.Create[i]
		if err := projectLink(p); err != nil {
			return nil, err
		}
		if link := throughLink(r, p); link != "" {
			a.say.warn("%s: %s was not made: the link %s leads there", p.Rule.Origin, p.Path, link)
			continue
		}
		if makeOwnDir(p.Path) == nil {
			made = true
		}
	}
	if !made {
		return r, nil
	}
	return c.resolve()
}

// errNotOwn says that a directory belongs to somebody else.
var errNotOwn = errors.New("the directory above belongs to another user")

// makeOwnDir makes a directory and those above that are missing, all with the
// mode 0700, as the XDG base directory specification asks for. The path has
// to be canonical: a link in it is an error, one that has just been put there
// too. The nearest directory that exists must belong to the user of this
// process: under sudo with the user's HOME, root would leave directories that
// the user can't write.
func makeOwnDir(dir string) error { return makePath(dir, true) }

// upwards lists a path and the directories above it, the root last.
func upwards(path string) []string {
	out := []string{path}
	for path != filepath.Dir(path) {
		path = filepath.Dir(path)
		out = append(out, path)
	}
	return out
}
