package policy

import (
	"strings"
	"sync"

	"github.com/zsbx/zsbx/policy/internal/tables"
)

// nameSet is a set of variables' names.
type nameSet struct {
	names    map[string]bool
	prefixes []string // of names that are in it, too
}

// nameSets reads the table of names, by section.
var nameSets = sync.OnceValue(func() map[string]nameSet {
	sets := map[string]nameSet{}
	for _, s := range tables.Env() {
		set := nameSet{names: make(map[string]bool, len(s.Entries))}
		for _, name := range s.Entries {
			if prefix, ok := strings.CutSuffix(name, "*"); ok {
				set.prefixes = append(set.prefixes, prefix)
			}
			set.names[name] = true
		}
		sets[s.Name] = set
	}
	return sets
})

func (s nameSet) has(name string) bool {
	if s.names[name] {
		return true
	}
	for _, p := range s.prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// scrubbedKeeps reports variables that programs need and that give nothing away.
func scrubbedKeeps(name string) bool {
	return name != "XDG_RUNTIME_DIR" && nameSets()["kept"].has(name)
}

// steersLoader reports variables that make a dynamic loader, a shell or an
// interpreter load or run other code than it was asked to.
func steersLoader(name string) bool { return nameSets()["loader"].has(name) }

// secretName reports names that look like those of secrets: a word of it, as
// separated by underscores, is one for a secret, or it belongs to a cloud's
// or a vault's family. Upper and lower case count the same.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	if nameSets()["secret"].has(name) {
		return true
	}
	for part := range nameSets()["secret part"].names {
		if strings.Contains(name, part) {
			return true
		}
	}
	if name == "PWD" {
		return false
	}
	words := nameSets()["secret word"]
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-.:/", r) }) {
		if words.has(w) || strings.HasSuffix(w, "TOKEN") {
			return true
		}
	}
	return false
}

// hasURLPassword reports a value that has a URL with a password in it, as
// database and proxy variables do. In one for HTTP a lone user name is taken
// for a token.
func hasURLPassword(value string) bool {
	for {
		scheme, after, ok := strings.Cut(value, "://")
		if !ok {
			return false
		}
		authority := after
		if i := strings.IndexAny(authority, "/?# \t\n,"); i >= 0 {
			authority = authority[:i]
		}
		if user, _, ok := strings.Cut(authority, "@"); ok {
			if strings.Contains(user, ":") || strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https") {
				return true
			}
		}
		value = after
	}
}
