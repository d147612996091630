package variables

import (
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/tables"
)

// In reports whether a section of the table of variables has a name.
func In(section, name string) bool {
	for _, entry := range tables.Find(tables.Env, section) {
		if name != "" && entry[0] == name[0] && tables.Matches(entry, name) {
			return true
		}
	}
	return false
}

// SteersLoader reports whether a variable makes a dynamic loader, a shell or an
// interpreter load or run code that it was not asked to run.
func SteersLoader(name string) bool { return In("loader", name) }

// IsSecret reports whether a name looks like that of a secret: one of its words,
// separated by underscores or the like, is one for a secret, or it belongs to a cloud's
// or a vault's family. Case does not matter.
func IsSecret(name string) bool {
	name = strings.ToUpper(name)
	hasPart := func(part string) bool { return strings.Contains(name, part) }
	isSecret := func(word string) bool { return In("secret word", word) || strings.HasSuffix(word, "TOKEN") }
	words := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("_-.:/", r) })
	return In("secret", name) || slices.ContainsFunc(tables.Find(tables.Env, "secret part"), hasPart) ||
		name != "PWD" && slices.ContainsFunc(words, isSecret)
}

// HasURLPassword reports whether a value has a URL with a password in it, as database and
// proxy variables do. In a URL for HTTP a user name alone is taken for a token.
func HasURLPassword(value string) bool {
	for {
		scheme, after, ok := strings.Cut(value, "://")
		if !ok {
			return false
		}
		value = after
		if i := strings.IndexAny(after, "/?# \t\n,"); i >= 0 {
			after = after[:i]
		}
		user, _, ok := strings.Cut(after, "@")
		http := strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https")
		if ok && (http || strings.Contains(user, ":")) {
			return true
		}
	}
}
