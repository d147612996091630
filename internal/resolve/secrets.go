package resolve

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/tables"
	"github.com/zsbx/zsbx/policy"
)

// secretPlace is one directory of the table on this machine, with places in it.
type secretPlace struct {
	base  string // canonical
	names []string
	agent bool // of coding agents
}

// secretTrees is the section of files with tokens in directories that presets open
// completely.
const secretTrees = "trees"

// secretVariables is the section of variables that move a place of secrets.
const secretVariables = "variables"

// agents is the kind of the places and variables of coding agents.
const agents = "coding agents"

// secretPaths returns the places of the table on this machine.
func secretPaths(v *view) []secretPlace {
	if v.Home == "" {
		return nil
	}
	groups := tables.Secrets
	all := make([]secretPlace, 0, len(groups)+8)
	bases := make(map[string][]string, 8)
	usual := &view{Host: host.Host{Home: v.Home}}
	for i := range groups {
		s := &groups[i]
		switch s.Name {
		case secretTrees:
			continue
		case secretVariables:
			if moved := movedSecrets(&v.Host, s); len(moved.names) > 0 {
				all = append(all, moved)
			}
			continue
		}
		if bases[s.Note] == nil { // the default stays a place of secrets even if a variable moves it
			bases[s.Note] = slices.Compact([]string{secretBase(&v.Host, usual, s.Note), secretBase(&v.Host, v, s.Note)})
		}
		for _, base := range bases[s.Note] {
			all = append(all, secretPlace{base, s.Entries, s.Name == agents})
		}
	}
	return all
}

// movedSecrets returns the places of secrets in the home directory that variables name. A
// rule for all of the home directory does not mean them, just as it does not mean the
// default places.
func movedSecrets(h *host.Host, variables *tables.Section) secretPlace {
	at := h.Way(h.Home)
	home := at.Path
	set := secretPlace{base: home, agent: variables.Note == agents}
	if at.Presence == host.Absent || home == "/" {
		return set
	}
	for _, name := range variables.Entries {
		for p := range strings.SplitSeq(h.Getenv(name), ":") {
			if !path.IsAbs(p) {
				continue
			}
			if real := h.Way(p).Path; real != home && host.Within(real, home) {
				set.names = append(set.names, real[len(home)+1:])
			}
		}
	}
	slices.Sort(set.names)
	return set
}

// secretBase returns a directory of the table, with the variables of a host. It is
// canonical, as far as that is known, unless it does not exist.
func secretBase(h *host.Host, vars *view, base string) string {
	written := vars.expanded(base)
	if to := h.Way(written); to.Presence != host.Absent {
		return to.Path
	}
	return written
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

// denySecrets denies the files with tokens in what presets or the baseline opened, unless
// a user opened them. They are looked for only once: these directories are executable and
// not writable, so a command can't make such a file.
func (rs *resolver) denySecrets() {
	rs.w.AsWritten()
	builtIn := rs.r.builtIn()
	var from policy.Origin
	opened := func(dir string) bool {
		opens := func(p *Path) bool { return host.Within(dir, p.Written) || host.Within(dir, p.Path) }
		at := slices.IndexFunc(builtIn, opens)
		if at >= 0 {
			from = builtIn[at].Rule.Origin
		}
		return at >= 0
	}
	for _, pattern := range tables.Find(tables.Secrets, secretTrees) {
		files, unread := tokenFiles(&rs.presets, pattern, opened)
		for _, f := range append(files, unread...) {
			pl, err := rs.w.Walk(f) // with an error it is unknown whether there is a file
			secret := err != nil || !pl.Stat.Mode.IsDir() || len(unread) > 0
			if pl.Gone == "" && secret && rs.userAccess(pl.Path) == 0 {
				rs.denyPath(pl.Path, f, from, false)
			}
		}
	}
}

// builtIn returns the paths of built-in rules, which are few even if the user has many.
func (r *Resolved) builtIn() (all []*Path) {
	for i := range r.Paths {
		if p := &r.Paths[i]; p.Rule.Origin.BuiltIn() {
			all = append(all, p)
		}
	}
	return all
}

func (rs *resolver) denyPath(p, written string, from policy.Origin, secret bool) {
	deny := policy.Named{Value: glob.QuoteMeta(syntax.Literal(written)), Origin: from}
	rs.r.Deny = append(rs.r.Deny, DenyPath{Pattern: p, Deny: deny, Secret: secret})
}

// tokenFiles returns the files that a pattern of secretTrees names on this machine, if
// the directory with which it begins is wanted. Some of them may not exist. If that directory
// can't be listed, it is unread: it may have any of them.
func tokenFiles(v *view, pattern string, wanted func(dir string) bool) (all, unread []string) {
	whole := v.expanded(pattern)
	dir, rest, wild := strings.Cut(whole, "/*")
	if !wild {
		dir = path.Dir(whole)
	}
	if whole == "" || !wanted(dir) { // "" if it is not known
		return nil, nil
	}
	if !wild {
		return []string{whole}, nil
	}
	entries, err := v.Entries(dir, -1)
	if err != nil && !host.Missing(err) {
		return nil, []string{dir}
	}
	for _, e := range entries {
		all = append(all, dir+"/"+e.Name()+rest)
	}
	return all, nil
}

// spareSecrets closes the places of secrets in what wide rules open. These are a user's
// rule for the home directory or one above it, because few users who write --rw ~ mean
// their keys, and the baseline's rules, if HOME is below /opt or CARGO_HOME below /usr. A
// rule for a place, for something in it, or for a directory on the way opens that much; a
// directory on the way does not open the agents' caches.
func (rs *resolver) spareSecrets() {
	at := rs.host.Way(rs.host.Home)
	if at.Presence == host.Absent || rs.host.Home == "" {
		return
	}
	home := at.Path
	var wide *policy.Origin // of a rule for all of home
	for i := range rs.r.Paths {
		if p := &rs.r.Paths[i]; wide == nil && !p.Rule.Origin.BuiltIn() && host.Within(home, p.Path) {
			wide = &p.Rule.Origin
		}
	}
	rs.spareAgents()
	builtIn := rs.r.builtIn()
	secrets := rs.secrets
	if secrets == nil || wide != nil || len(rs.presets.Env) != len(rs.host.Env) {
		secrets = secretPaths(rs.host)
	}
	for i := range secrets {
		set := &secrets[i]
		by := wide
		if by == nil {
			opens := func(p *Path) bool { return p.Rule.Origin.Source == "baseline" && host.Within(set.base, p.Path) }
			at := slices.IndexFunc(builtIn, opens)
			if at < 0 {
				continue
			}
			by = &builtIn[at].Rule.Origin
		}
		for _, name := range set.names {
			rs.spare(*by, home, set.base+"/"+name)
		}
	}
}

// spareAgents closes the caches of coding agents, with their logins, in what a rule for the
// directory above opens: users who write --rw ~/.cache do not know that they are there.
func (rs *resolver) spareAgents() {
	for _, vars := range []*view{{Host: host.Host{Home: rs.host.Home}}, rs.host} {
		base := secretBase(&rs.host.Host, vars, "${XDG_CACHE_HOME:-~/.cache}")
		for i := range rs.r.Paths {
			if p := &rs.r.Paths[i]; !p.Rule.Origin.BuiltIn() && host.Within(base, p.Path) {
				rs.spare(p.Rule.Origin, base, base+agentCaches)
				break
			}
		}
	}
}

// spare denies one place, or the parts of it that no rule names. Rules for home or above do
// not count. If it is not known whether there is such a place, it is denied as well.
func (rs *resolver) spare(by policy.Origin, home, place string) {
	pl, err := rs.w.Walk(place)
	if pl.Gone != "" || !rs.r.Allowed(pl.Path, policy.Read).Allowed {
		return
	}
	if err != nil {
		rs.denyPath(pl.Path, pl.Path, by, true)
		return
	}
	inside := false
	for i := range rs.r.Paths {
		p := &rs.r.Paths[i]
		switch {
		case host.Within(home, p.Path):
		case p.Path == pl.Path, host.Within(pl.Path, p.Path) && !p.Rule.Origin.BuiltIn():
			return
		case host.Within(p.Path, pl.Path):
			inside = true
		}
	}
	if inside {
		entries, err := rs.host.Entries(pl.Path, -1)
		for _, e := range entries {
			rs.spare(by, home, pl.Path+"/"+e.Name())
		}
		if err == nil {
			return
		}
	}
	rs.denyPath(pl.Path, pl.Path, by, true)
}

// Lent returns the paths that an agent's preset opens only for reading, but that a rule for
// home, for a directory above it, or for a target of its links would make writable. The agent
// itself relies on these paths, so they stay read-only unless a rule names the path, or a
// directory on the way to it. home must be without links.
func (r *Resolved) Lent(home string) (lent []string) {
	inHome := func(p string) bool { return host.Within(p, home) }
	asked := func(p *Path) bool {
		return slices.ContainsFunc(r.Paths, func(a Path) bool {
			writes := a.Access&policy.Write != 0 && !a.Rule.Origin.BuiltIn()
			if !writes || !host.Within(p.Path, a.Path) || host.Within(home, a.Path) {
				return false
			}
			elsewhere := func(link string) bool {
				return inHome(link) && !host.Within(link, a.Path) && !slices.Contains(a.Links, link)
			}
			return a.Path == p.Path || !slices.ContainsFunc(p.Links, elsewhere)
		})
	}
	for i := range r.Paths {
		p := &r.Paths[i]
		if p.Access&policy.Write != 0 || !isAgent(&p.Rule) {
			continue
		}
		if (inHome(p.Path) || slices.ContainsFunc(p.Links, inHome)) && !asked(p) {
			lent = append(lent, p.Path)
		}
	}
	return lent
}

// Unwise returns a function that says why only the user should allow a canonical path, or
// "". The reasons are places of secrets, files with tokens in toolchains, and, for writing,
// what is on PATH and what programs outside run or trust. A directory counts with everything
// in it. The machine is looked at once, as it is now.
func (r *Resolved) Unwise() func(p string, a policy.Access, dir bool) string {
	if r.host.Lstat == nil {
		return func(string, policy.Access, bool) string { return "it can't be looked at" }
	}
	v := r.host
	g := newGuard(&v, nil)
	g.search = realSearchPath(&g.host.Host)
	var tokens []string
	for _, pattern := range tables.Find(tables.Secrets, secretTrees) {
		files, unread := tokenFiles(&v, pattern, func(string) bool { return true })
		for _, f := range append(files, unread...) {
			if to := v.Way(f); to.Presence != host.Absent {
				tokens = append(tokens, to.Path)
			}
		}
	}
	return func(p string, a policy.Access, dir bool) string {
		asked := &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: syntax.Literal(p), Access: policy.Read}}}}
		if err := asked.EncodeTOML(io.Discard); err != nil {
			return err.Error()
		}
		if s := g.secret(p, false); s != "" && !(a == policy.Read && g.public(p, dir)) {
			return g.holds(g.present(p, s))
		}
		for _, t := range tokens {
			if host.Within(t, p) || host.Within(p, t) {
				return t + " holds secrets"
			}
		}
		if strings.Contains(p+"/", projectCaches) && (r.Cache == "" || !host.Within(p, r.Cache)) {
			return "other projects' caches are there"
		}
		if a&policy.Write == 0 {
			return ""
		}
		at := Path{Path: p}
		if dir {
			at.Mode = fs.ModeDir
		}
		return g.unwritable(&at)
	}
}

// public reports whether a path is that of a public key beside SSH's private ones.
func (g *guard) public(p string, dir bool) bool {
	return !dir && path.Dir(p) == g.home+"/.ssh" && strings.HasSuffix(p, ".pub")
}
