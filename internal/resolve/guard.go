package resolve

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// guard checks what presets open and want made, after every link is followed. Variables
// such as GOCACHE can move a preset's rules anywhere, and the promises of presets must
// hold even so. A preset's rule is dropped if it would open the home directory, a
// directory above it or a known place of secrets, if it would make the working directory
// writable, or if it leads through a link that a command could have put there. It loses
// its write access if it could change something on PATH, or files that shells, editors, git
// or the system run or trust. The baseline's rules for the home directory are
// guarded in the same way. The user's rules, from flags or policies, are not.
func (rs *resolver) guard() {
	isGuarded := func(p Path) bool { return guarded(&p.Rule) }
	if len(rs.r.Create) == 0 && !slices.ContainsFunc(rs.r.Paths, isGuarded) {
		return
	}
	g := newGuard(&rs.presets, rs.r.Paths)
	rs.secrets = g.secrets
	rs.r.Create = slices.DeleteFunc(rs.r.Create, func(p Path) bool { return isGuarded(p) && g.refuse(&p) != "" })
	dropped := func(p Path) bool { return isGuarded(p) && rs.skipped(p.Rule, g.refuse(&p)) }
	rs.r.Paths = slices.DeleteFunc(rs.r.Paths, dropped)
	for i := range rs.r.Paths {
		p := &rs.r.Paths[i]
		if p.Access&policy.Write == 0 || !isGuarded(*p) {
			continue
		}
		if why := g.unwritable(p); why != "" {
			rs.skipped(p.Rule, "read only, not writable: "+why)
			p.Access &^= policy.Write
		}
	}
}

// guard is what paths are compared with. All of it is canonical.
type guard struct {
	host    *view
	home    string
	dir     string
	project string // the repository around dir; "" until it is needed
	secrets []secretPlace
	search  []string
	open    []string // what users made writable
}

// newGuard finds out what there is to guard. paths has what users made writable.
func newGuard(v *view, paths []Path) *guard {
	g := &guard{host: v, home: path.Clean(v.Home), dir: v.Dir, secrets: secretPaths(v)}
	if v.Home != "" {
		g.home = v.Way(g.home).Path
	}
	for i := range paths {
		if p := &paths[i]; p.Access&policy.Write != 0 && !p.Rule.Origin.BuiltIn() {
			g.open = append(g.open, p.Path)
		}
	}
	return g
}

// refuse returns why a preset must not open a path at all, or "".
func (g *guard) refuse(p *Path) string {
	if p.Path == "/" || g.home != "." && host.Within(g.home, p.Path) {
		return "a preset never opens the home directory or one above it"
	}
	toolchains := []string{"go/env", "fnm", "pipx", "pypoetry/venv"} // which have no secrets
	isTool := func(name string) bool { return host.Within(p.Path, g.home+"/Library/Application Support/"+name) }
	if s := g.secret(p.Path, isAgent(&p.Rule)); s != "" && !slices.ContainsFunc(toolchains, isTool) {
		return "a preset never opens " + s
	}
	for _, link := range p.Links {
		if g.changeable(link) {
			return "a preset follows no link that a command can change: " + link
		}
	}
	// The git preset's rules have the access of the working tree itself.
	if p.Access&policy.Write != 0 && g.dir != "" && host.Within(g.dir, p.Path) && p.Rule.Origin.Source != "preset git" {
		return "a preset never makes the working directory writable"
	}
	return ""
}

// unwritable returns why only the user should make a path writable, or "".
func (g *guard) unwritable(p *Path) string {
	if g.search == nil {
		g.search = realSearchPath(&g.host.Host)
	}
	if dir := g.onPATH(p); dir != "" {
		return dir + " is on PATH"
	}
	if place := g.usedOutside(p); place != "" && p.Rule.Origin.Source != "preset git" {
		return "programs outside run or trust " + place
	}
	return ""
}

// secret returns a place of secrets that is in a path, or that the path is in, or "". For
// an agent's preset, the places of agents do not count.
func (g *guard) secret(p string, agent bool) string {
	for i := range g.secrets {
		s := &g.secrets[i]
		if s.agent && agent {
			continue
		}
		if host.Within(s.base, p) {
			return s.base + "/" + s.names[0]
		}
		if !host.Within(p, s.base) {
			continue
		}
		below := p[len(s.base)+1:]
		first, _ := slices.BinarySearch(s.names, below)
		for at := first; at < len(s.names) && strings.HasPrefix(s.names[at], below); at++ {
			if host.Within(s.names[at], below) {
				return s.base + "/" + s.names[at]
			}
		}
		for end := strings.LastIndexByte(below, '/'); end > 0; end = strings.LastIndexByte(below[:end], '/') {
			if _, found := slices.BinarySearch(s.names, below[:end]); found {
				return s.base + "/" + below[:end]
			}
		}
	}
	return ""
}

// present returns a place of secrets in a path that is there, or else the one that was found.
func (g *guard) present(p, found string) string {
	if host.Within(p, found) {
		return found
	}
	for _, s := range g.secrets {
		for _, name := range s.names {
			at := s.base + "/" + name
			if host.Within(at, p) && g.host.Look(at).Presence == host.Present {
				return at
			}
		}
	}
	return found
}

// holds says that a place is one of secrets. That it has some is not said of one that is missing.
func (g *guard) holds(secret string) string {
	if g.host.Look(secret).Presence == host.Absent {
		return secret + " is a place for secrets"
	}
	return secret + " holds secrets"
}

// public reports whether a path is that of a public key beside SSH's private ones.
func (g *guard) public(p string, dir bool) bool {
	return !dir && path.Dir(p) == g.home+"/.ssh" && strings.HasSuffix(p, ".pub")
}

// changeable reports whether a link may have been put there by a command (this one, or an
// earlier one with the same rules or in another part of the project) or by the project's
// authors. Any link in the projects' own caches counts as a command's.
func (g *guard) changeable(link string) bool {
	if g.project == "" {
		g.project = g.host.Project()
	}
	work := func(dir string) bool { return host.Within(link, dir) && !host.Within(g.home, dir) }
	if work(g.dir) || work(g.project) || strings.Contains(link+"/", projectCaches) {
		return true
	}
	return slices.ContainsFunc(g.open, func(tree string) bool { return host.Within(link, tree) })
}

// onPATH returns a directory on PATH whose programs could be changed by writing to a path:
// the path is that directory, is above it, or is a file in it.
func (g *guard) onPATH(p *Path) string {
	for _, dir := range g.search {
		if host.Within(dir, p.Path) || p.Mode&fs.ModeDir == 0 && host.Within(p.Path, dir) {
			return dir
		}
	}
	return ""
}

// usedOutside returns which place that programs outside run or trust could be changed by writing to a
// path, or "".
func (g *guard) usedOutside(p *Path) string {
	for name := range strings.SplitSeq(p.Path, "/") {
		if name != "" && name[0] == '.' && slices.Contains(places("project"), name) {
			return name
		}
	}
	if rel, ok := strings.CutPrefix(p.Path, g.home+"/"); ok && g.home != "." {
		return placeOf(rel, p.Mode.IsDir(), "startup", "startup macos", "programs")
	}
	return placeOf(p.Path, p.Mode.IsDir(), "system")
}
