package sandbox

import (
	"fmt"
	"path"

	"github.com/zsbx/zsbx/enforce/sandbox/internal/safepath"
	"github.com/zsbx/zsbx/policy"
)

// makeDirs makes the directories that presets and policies want to be there,
// such as a build cache, and reports whether there were any: Landlock can allow
// only what exists, and a tool that can't make its cache fails. One that can't be
// made is left alone; the tool says so in its own words. Nothing is made by a link
// that a command may have put there.
func (c *prepared) makeDirs() (made bool) {
	for i := range c.resolved.Create {
		p := &c.resolved.Create[i]
		if link := c.resolved.PlantedLink(p); link != "" {
			c.warn.warn(Warning{Text: fmt.Sprintf("%s: %s was not made: the link %s leads there", p.Rule.Origin, p.Path, link)})
			continue
		}
		if safepath.MakeOwnDir(p.Path) == nil {
			made = true
		}
	}
	return made
}

// makeCacheLinks makes the links in the project's own cache that presets want. A
// command may have put anything there: an os.Root never leads outside of it.
// A link that can't be made is left alone; the tool has a cold cache then.
func makeCacheLinks(r *policy.Resolved) {
	if len(r.Links) == 0 {
		return
	}
	root, err := safepath.OpenRoot(r.Cache)
	if err != nil {
		return
	}
	defer root.Close()
	for _, l := range r.Links {
		old, err := root.Readlink(l.Name)
		if err == nil && old == l.To {
			continue
		}
		if err == nil {
			root.Remove(l.Name) // it led to where the shared cache was before
		} else {
			root.Mkdir(path.Dir(l.Name), 0o700)
		}
		root.Symlink(l.To, l.Name)
	}
}
