package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"
)

// The project's own cache. Programs outside start what is in some caches
// (npx, wrappers), or have hard links into them (uv, bun). There a command that
// may write has them do what it wants, in other projects too. So the presets
// point these tools to a directory that belongs to one working directory and
// to commands under zsbx. It stays, so that the second run is as fast as any.

// cacheVariable names it in a path.
const cacheVariable = "ZSBX_CACHE"

// projectCaches is the directory below that for caches in which they are.
const projectCaches = "/zsbx-caches/"

// projectCache is the project's own cache, "" where there is no place for one. Its
// name is made of the working directory's: no other project has it. A coding
// agent's is its own, too, and a place of secrets: its login is in it.
func (h *Host) projectCache() string {
	base := h.place("${XDG_CACHE_HOME:-~/.cache}")
	if !path.IsAbs(base) {
		return ""
	}
	sum := sha256.Sum256([]byte(h.Dir))
	id := hex.EncodeToString(sum[:8])
	if h.agents != "" {
		return path.Clean(base) + "/zsbx-agents/" + id + h.agents
	}
	return path.Clean(base) + "/zsbx-caches/" + id
}

// cacheOfAgents is the end of a cache's name that the agents' presets among the
// rules give it: "-claude", "" for none.
func cacheOfAgents(rules []Rule) string {
	var names []string
	for i := range rules {
		if r := &rules[i]; r.Path == "$"+cacheVariable && isAgent(r) {
			names = append(names, "-"+strings.TrimPrefix(r.Origin.Source, "preset "))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "")
}

// forPresets is the host as presets see it: a variable that the policy sets
// moves a tool's directories as one of the caller's does. PATH and HOME are
// those of programs outside, and stay.
func (h *Host) forPresets(set []Var) Host {
	own := *h
	var vars []string
	for _, v := range slices.Backward(set) { // the last one counts, and the first of an environment
		if !v.Origin.BuiltIn() && v.Name != "PATH" && v.Name != "HOME" {
			vars = append(vars, v.Name+"="+v.Value)
		}
	}
	if vars != nil {
		own.Env = append(vars, h.Env...)
	}
	return own
}

// projectCache settles the project's own cache: what is to be in it, and the
// variables that lead there, which are left out where it can't be made.
func (rs *resolver) projectCache(flat *Policy) {
	dir, usable := rs.presets.projectCache(), false
	if dir != "" {
		rs.w.exact = false
		if pl, err := rs.w.walk(dir); err == nil {
			dir = pl.path
			usable = rs.userAccess(dir)&Write != 0 ||
				slices.ContainsFunc(rs.r.Paths, func(p Path) bool { return p.Path == dir && p.Access&Write != 0 }) ||
				slices.ContainsFunc(rs.r.Create, func(p Path) bool { return p.Path == dir })
		}
	}
	if usable {
		rs.r.Cache = dir
		rs.r.CacheLinks, rs.r.CacheCopies = rs.expandLinks(flat.FS.CacheLinks), rs.expandLinks(flat.FS.CacheCopies)
	}
	flat.Env.Set = slices.DeleteFunc(flat.Env.Set, func(v Var) bool {
		return v.Origin.BuiltIn() && !usable && strings.Contains(v.Value, "$"+cacheVariable)
	})
	for i := range flat.Env.Set {
		if v := &flat.Env.Set[i]; v.Origin.BuiltIn() {
			v.Value = strings.ReplaceAll(v.Value, "$"+cacheVariable, dir)
		}
	}
}

// expandLinks gives links with absolute paths.
func (rs *resolver) expandLinks(links []CacheEntry) []CacheEntry {
	var out []CacheEntry
	for _, l := range links {
		if to, err := rs.presets.absolute(l.To); err == nil {
			out = append(out, CacheEntry{Name: l.Name, To: to})
		}
	}
	return out
}
