package resolve

import (
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/tables"
)

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
