package resolve

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/tables"
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

// skipped notes why a rule, or its write access, was left out, if there is a reason.
func (rs *resolver) skipped(rule policy.Rule, why string) bool {
	if why != "" {
		rs.r.Skipped = append(rs.r.Skipped, Skip{Rule: rule, Reason: why})
	}
	return why != ""
}

// refuse returns an error for a rule that would break what zsbx relies on.
func (rs *resolver) refuse(p *Path) error {
	if rs.host.OS != "linux" {
		return nil
	}
	for _, link := range p.Links {
		if (link == "/proc/self" || link == "/proc/thread-self") && host.Within(p.Path, "/proc") {
			return fmt.Errorf("%s would be the directory of zsbx itself, not of the command: allow /proc instead",
				p.Written)
		}
	}
	if p.Access&policy.Write == 0 {
		return nil
	}
	for _, dir := range [...]string{"/proc", "/sys/fs/cgroup"} {
		if host.Within(p.Path, dir) {
			return fmt.Errorf("%s must not be writable: tracking and the sandbox itself rely on %s", p.Path, dir)
		}
	}
	return nil
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

// guarded reports whether a rule is built in and depends on the home directory or on
// variables.
func guarded(r *policy.Rule) bool {
	return r.Origin.BuiltIn() && (r.Origin.Source != "baseline" || !strings.HasPrefix(r.Path, "/"))
}

// isAgent reports whether a rule is from a coding agent's preset. Only these may open the
// agents' logins.
func isAgent(r *policy.Rule) bool {
	name, ok := strings.CutPrefix(r.Origin.Source, "preset ")
	return ok && slices.ContainsFunc(presets.All(), func(p presets.Info) bool { return p.Agent && p.Name == name })
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

// realSearchPath returns PATH, also with its links followed: a directory that does not exist may
// be made later. It is never nil.
func realSearchPath(h *host.Host) []string {
	dirs := []string{}
	for _, dir := range searchPath(h) {
		dirs = append(dirs, dir)
		if real := h.Way(dir).Path; real != dir {
			dirs = append(dirs, real)
		}
	}
	return dirs
}

// places returns the places in a section of the table.
func places(section string) []string { return tables.Find(tables.Places, section) }

// StartupFiles returns files and directories below the home directory that the user's next
// shell, login, git or editor reads and executes on a system. The caller must not change the
// list.
func StartupFiles(os string) []string {
	if more := places("startup " + os); more != nil {
		return slices.Concat(places("startup"), more)
	}
	return places("startup")
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

// placeOf returns the first place of some sections that a path is in, or that is in it.
func placeOf(p string, dir bool, sections ...string) string {
	for _, section := range sections {
		for _, place := range places(section) {
			if host.Within(p, place) || dir && host.Within(place, p) {
				return place
			}
		}
	}
	return ""
}
