package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
)

// includes protects files in writable trees that a git configuration includes (git-config(1),
// "Includes"). The condition of an includeIf does not matter, since it may hold later. A
// relative path starts at the directory of the configuration as named, before links are
// followed.
func (c *protector) includes(config string) {
	read := "include " + config // a key that is no path
	if c.seen[read] || c.full(config) {
		return
	}
	c.seen[read] = true
	real, st, err := c.host.RealPath(config)
	if err != nil || !st.Mode.IsRegular() {
		return
	}
	data, err := c.host.ReadFile(real)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return // the user's git can't read it either
	}
	if err != nil {
		c.unread(config, err.Error())
		return
	}
	names, bad := includedPaths(string(data))
	for _, name := range names {
		if c.full(name) {
			return
		}
		c.include(config, name)
	}
	if bad > 0 {
		c.unread(config, fmt.Sprintf("line %d is not what git-config(1) allows", bad))
	}
}

// include protects one file that a configuration names. ".." in it is resolved after links.
func (c *protector) include(config, name string) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && c.home != "" {
		name = c.home + "/" + rest
	}
	switch {
	case strings.HasPrefix(name, "~"):
		c.unread(config, fmt.Sprintf("it includes %q in another user's home, which was not looked up", name))
		return
	case strings.HasPrefix(name, "%(prefix)/"):
		return // git's own installation
	case !path.IsAbs(name):
		name = path.Dir(config) + "/" + name
	}
	i := strings.LastIndexByte(name, '/')
	base := name[i+1:]
	if base == "" || base == "." || base == ".." {
		return // a directory
	}
	dir, links, _, err := c.host.Trail(name[:i])
	if c.watchWay(links, err); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // git ignores it, too
	}
	if name = path.Join(dir, base); c.writable(name) {
		c.add(name, c.within(name))
	}
	if real, _, err := c.host.RealPath(name); err == nil {
		c.includes(name)
		c.includes(real) // other programs than git may resolve the path first
	}
}

// unread records that not all includes of a configuration are known.
func (c *protector) unread(config, why string) {
	c.out.Facts = append(c.out.Facts, Fact{Promise: "no change of what " + config + " includes", Why: why})
}

// includedPaths returns the values of include.path and includeIf.*.path, and the number of the
// first invalid line, or 0.
func includedPaths(config string) (paths []string, bad int) {
	settings, bad := gitconfig.Read(config)
	for _, s := range settings {
		if s.Includes() {
			paths = append(paths, s.Values()...)
		}
	}
	return paths, bad
}
