package resolve

import (
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// The project's own cache. Programs outside start what is in some caches
// (npx, wrappers), or have hard links into them (uv, bun). A command that may write
// there can make them do what it wants, in other projects too. So the presets
// point these tools to a directory that belongs to one working directory and
// to commands under zsbx. It stays, so that the next run is fast.

// cacheOfAgents returns what the agents' presets among the rules add to a cache's name:
// "-claude", or "" for none.
func cacheOfAgents(rules []policy.Rule) string {
	var names []string
	for i := range rules {
		if r := &rules[i]; r.Path == "$"+cacheVariable && isAgent(r) {
			names = append(names, "-"+strings.TrimPrefix(r.Origin.Source, "preset "))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "")
}

// projectCache sets up the project's cache: what is to be in it, and the variables
// that lead there. These are left out if it can't be made.
func (rs *resolver) projectCache(flat *policy.Policy) {
	dir := rs.presets.projectCache()
	usable := false
	if dir != "" {
		if pl, err := rs.w.Walk(dir); err == nil {
			dir = pl.Path
			writable := func(p Path) bool { return p.Access&policy.Write != 0 && p.Covers(dir) }
			made := func(p Path) bool { return p.Path == dir }
			usable = slices.ContainsFunc(rs.r.Paths, writable) || slices.ContainsFunc(rs.r.Create, made)
		}
	}
	if usable {
		rs.r.Cache = dir
		for _, l := range flat.FS.Cache {
			if to, err := rs.presets.absolute(l.To); err == nil {
				rs.r.CacheLinks = append(rs.r.CacheLinks, policy.CacheEntry{Name: l.Name, To: to, Copy: l.Copy})
			}
		}
	}
	flat.Env.Set = slices.DeleteFunc(flat.Env.Set, func(v policy.Named) bool {
		return v.Origin.BuiltIn() && !usable && strings.Contains(v.Value, "$"+cacheVariable)
	})
	for i := range flat.Env.Set {
		if v := &flat.Env.Set[i]; v.Origin.BuiltIn() {
			v.Value = strings.ReplaceAll(v.Value, "$"+cacheVariable, dir)
		}
	}
}
