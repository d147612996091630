package protect

import (
	"fmt"
	"path"
	"strings"

	"github.com/zsbx/zsbx/internal/gitconfig"
	"github.com/zsbx/zsbx/internal/host"
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
	p := c.parsed(config)
	if p.err != nil {
		c.unread(p.at, p.err)
		return
	}
	for _, name := range includedPaths(p.settings) {
		if c.full(name) {
			return
		}
		c.include(config, name)
	}
	if p.bad > 0 {
		c.unparsed(config, fmt.Sprintf("line %d is not what git-config(1) allows", p.bad))
	}
}

// parsed is a git configuration that was read once.
type parsed struct {
	at       string // where its name leads
	settings []gitconfig.Setting
	bad      int   // the first line that is not valid, or 0
	err      error // why it is not known what it has
}

// parsed returns a configuration. One that does not exist has no settings.
func (c *protector) parsed(config string) *parsed {
	if p := c.configs[config]; p != nil {
		return p
	}
	to := c.host.Way(config)
	p := &parsed{at: to.Path}
	if c.configs == nil {
		c.configs = make(map[string]*parsed)
	}
	c.configs[config] = p
	if to.Presence == host.Unknown {
		p.err = to.Err
	}
	if !to.IsRegular() {
		return p
	}
	text, err := c.host.ReadFile(to.Path)
	switch {
	case host.Missing(err):
	case err != nil:
		p.err = err
	default:
		p.settings, p.bad = gitconfig.Read(string(text))
	}
	return p
}

// include protects one file that a configuration names. ".." in it is resolved after links.
func (c *protector) include(config, name string) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && c.home != "" {
		name = c.home + "/" + rest
	}
	switch {
	case strings.HasPrefix(name, "~"):
		c.unparsed(config, fmt.Sprintf("it includes %q in another user's home, which was not looked up", name))
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
	dir := c.host.Way(name[:i])
	c.compareWay(dir.Links, dir.Err)
	name = path.Join(dir.Path, base)
	if c.writable(name) {
		c.add(name, c.within(name))
	}
	to := c.host.Way(name)
	if to.Presence == host.Unknown {
		c.compareLinks(to.Links)
		c.unknown(to.Path, to.Err)
		return
	}
	if to.Presence == host.Present {
		c.includes(name)
		c.includes(to.Path) // other programs than git may resolve the path first
	}
}

// unparsed records that not all includes of a configuration are known.
func (c *protector) unparsed(config, why string) {
	c.out.Facts = append(c.out.Facts, Fact{Promise: "no change of what " + config + " includes", Why: why})
}

// includedPaths returns the values of include.path and includeIf.*.path.
func includedPaths(settings []gitconfig.Setting) (paths []string) {
	for _, s := range settings {
		if s.Includes() {
			paths = append(paths, s.Values()...)
		}
	}
	return paths
}
