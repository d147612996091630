package policy

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/glob"
	"github.com/zsbx/zsbx/policy/internal/tables"
)

// secretPlace is one directory of the table on this machine.
type secretPlace struct {
	base  string // canonical
	names []string
	agent bool // of coding agents
}

// secretTrees is the section of files with tokens in directories that presets open
// as a whole.
const secretTrees = "trees"

// secretPaths are the places of the table on this machine.
func (h *Host) secretPaths() []secretPlace {
	if h.Home == "" {
		return nil
	}
	groups := tables.Secrets()
	all := make([]secretPlace, 0, len(groups)+8)
	bases := make(map[string][2]string, 8)
	for i := range groups {
		s := &groups[i]
		if s.Name == secretTrees {
			continue
		}
		b, ok := bases[s.Note]
		if !ok {
			// The default stays a place of secrets when a variable moves it.
			b = [2]string{h.secretBase(&Host{Home: h.Home}, s.Note), h.secretBase(h, s.Note)}
			bases[s.Note] = b
		}
		agent := s.Name == "coding agents"
		all = append(all, secretPlace{b[0], s.Entries, agent})
		if b[1] != b[0] {
			all = append(all, secretPlace{b[1], s.Entries, agent})
		}
	}
	return all
}

// secretBase is a directory of the table, canonical if it exists, with the
// variables of a host.
func (h *Host) secretBase(vars *Host, base string) string {
	written := vars.place(base)
	if real, _, err := h.RealPath(written); err == nil {
		return real
	}
	return written
}

// secret is a place of secrets that lies in a path, or that the path lies in,
// or "". To an agent's preset the places of agents are none.
func (g *guard) secret(p string, agent bool) string {
	for i := range g.secrets {
		s := &g.secrets[i]
		if s.agent && agent {
			continue
		}
		if Within(s.base, p) {
			return s.base + "/" + s.names[0]
		}
		if !Within(p, s.base) {
			continue
		}
		below := p[len(s.base)+1:]
		for at, _ := slices.BinarySearch(s.names, below); at < len(s.names) && strings.HasPrefix(s.names[at], below); at++ {
			if Within(s.names[at], below) {
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

// denySecrets denies the files with tokens that lie in what presets opened,
// unless a user opened them. They are looked for once: nobody inside can make
// one in a directory that a preset makes executable only.
func (rs *resolver) denySecrets() {
	rs.w.exact = false
	for _, pattern := range tables.Find(tables.Secrets(), secretTrees) {
		dir, list := rs.presets.tokenFiles(pattern)
		at := slices.IndexFunc(rs.r.Paths, func(p Path) bool {
			return strings.HasPrefix(p.Rule.Origin.Source, "preset ") && (Within(dir, p.Written) || Within(dir, p.Path))
		})
		if dir == "" || at < 0 {
			continue
		}
		for _, f := range list() {
			pl, err := rs.w.walk(f)
			if err != nil || pl.gone != "" || pl.stat.Mode&fs.ModeDir != 0 || rs.userAccess(pl.path) != 0 {
				continue
			}
			rs.r.Deny = append(rs.r.Deny, DenyPath{
				Pattern: pl.path, Deny: Deny{Pattern: glob.QuoteMeta(literal(f)), Origin: rs.r.Paths[at].Rule.Origin},
			})
		}
	}
}

// tokenFiles are the files that a pattern of secretTrees names on this machine, of
// which some may not exist, and the directory that they lie in, "" where that is not
// known.
func (h *Host) tokenFiles(pattern string) (dir string, list func() []string) {
	written := h.place(pattern)
	dir, rest, wild := strings.Cut(written, "/*")
	if !wild {
		return path.Dir(written), func() []string { return []string{written} }
	}
	return dir, func() (all []string) {
		if h.ReadDir == nil {
			return nil
		}
		entries, _ := h.ReadDir(dir)
		for _, e := range entries {
			all = append(all, dir+"/"+e.Name()+rest)
		}
		return all
	}
}
