package policy

import (
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tables"
)

// in reports whether a section of the table of names has a name.
func in(section, name string) bool {
	return slices.ContainsFunc(tables.Find(tables.Env(), section), func(entry string) bool {
		return strings.HasPrefix(name, entry[:1]) && named(entry, name)
	})
}

// scrubbedKeeps reports variables that programs need and that give nothing away.
func scrubbedKeeps(name string) bool {
	return name != "XDG_RUNTIME_DIR" && in("kept", name)
}

// steersLoader reports variables that make a dynamic loader, a shell or an
// interpreter load or run other code than it was asked to.
func steersLoader(name string) bool { return in("loader", name) }

// secretName reports names that look like those of secrets: a word of it, as
// separated by underscores, is one for a secret, or it belongs to a cloud's
// or a vault's family. Upper and lower case count the same.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	if in("secret", name) {
		return true
	}
	for _, part := range tables.Find(tables.Env(), "secret part") {
		if strings.Contains(name, part) {
			return true
		}
	}
	if name == "PWD" {
		return false
	}
	for _, w := range strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-.:/", r) }) {
		if in("secret word", w) || strings.HasSuffix(w, "TOKEN") {
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
