package resolve

import (
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/tables"
	"github.com/zsbx/zsbx/policy"
)

// Secret returns the known place of secrets that a canonical path is in, or that is in
// it, or "". It costs some hundred looks at the file system.
func (r *Resolved) Secret(p string) string {
	g := newGuard(&r.host, nil)
	if g.public(p, false) {
		return ""
	}
	s := g.secret(p, false)
	if s == "" {
		return ""
	}
	return g.present(p, s)
}

// HoldsSecrets says that what Secret returned is a place of secrets.
func (r *Resolved) HoldsSecrets(secret string) string {
	g := guard{host: &r.host}
	return g.holds(secret)
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
