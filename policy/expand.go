package policy

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
)

var errUnset = errors.New("is not set, or empty (a dollar sign is written $$)")

// view is the machine as paths are expanded on it: presets see the variables that a policy sets.
type view struct {
	Host
	agents string // what coding agents add to the name of the project's own cache
}

// absolute expands a path as it is written in a rule, without following links.
func (v *view) absolute(s string) (string, error) {
	if err := checkPath(s); err != nil {
		return "", err
	}
	return v.expand(s)
}

// expand is absolute without the checks of what is written.
func (v *view) expand(s string) (string, error) {
	if s[0] == '/' && strings.IndexByte(s, '$') < 0 {
		return path.Clean(s), nil
	}
	whole, err := v.whole(s, func(s string) string { return s })
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(whole, "/") {
		whole = v.Dir + "/" + whole
	}
	return path.Clean(whole), nil
}

// whole expands a path that may stay relative. It applies quote to what "~", "cwd" and
// variables stand for. "~" and "cwd" must be the first name of the path: a file of that
// name in the working directory is "./~" or "./cwd".
//
// It replaces $NAME and ${NAME} with their values, $$ with a dollar sign, and
// ${NAME:-word} with the first absolute path in the variable's value, or with the word,
// which is again a path. Tools refuse a value that is not an absolute path
// ("GOCACHE=off"), or take it relative to a directory that is not known here. Values
// are not expanded again.
func (v *view) whole(s string, quote func(string) string) (string, error) {
	base := ""
	first, rest, _ := strings.Cut(s, "/")
	switch first {
	case "~":
		base = v.Home
		if base == "" {
			return "", fmt.Errorf("$HOME %w", errUnset)
		}
	case "cwd":
		base = v.Dir
	default:
		rest = s
	}
	rest, err := replaceVariables(rest, func(in variable) (string, error) {
		if !in.hasDefault {
			value, err := v.lookup(in.name)
			return quote(value), err
		}
		value, _, _ := strings.Cut(v.Getenv(in.name), ":") // GOPATH is a list; go writes to its first element only
		value = strings.TrimRight(value, "/")
		if strings.HasPrefix(value, "/") {
			return quote(value), nil
		}
		return v.whole(in.word, quote)
	})
	if base == "" {
		return rest, err
	}
	return quote(base) + "/" + rest, err
}

// expanded returns a built-in path without "~" and variables, or "" if that is not possible.
func (v *view) expanded(s string) string {
	p, _ := v.expand(s)
	return p
}

// checkVariables returns what is wrong with the variables in a path.
func checkVariables(s string) error {
	_, err := replaceVariables(s, func(variable) (string, error) { return "", nil })
	if err != nil {
		err = fmt.Errorf("path %q: %w", s, err)
	}
	return err
}

// variable is a reference to one in a path.
type variable struct {
	name       string // "$" for a second dollar sign
	word       string // of ${NAME:-word}
	hasDefault bool
}

// valid reports whether the name is one of a variable, and the word has no mistake.
func (v *variable) valid() bool {
	if v.name == "$" {
		return true
	}
	if v.name == "" || nameLen(v.name) < len(v.name) {
		return false
	}
	return !strings.Contains(v.word, "$") || checkVariables(v.word) == nil
}

// replaceVariables replaces each variable in a path with what value returns for it.
func replaceVariables(s string, value func(variable) (string, error)) (string, error) {
	done := ""
	for {
		before, after, found := strings.Cut(s, "$")
		if !found {
			return done + s, nil
		}
		v := variable{}
		n := 1
		switch {
		case strings.HasPrefix(after, "$"):
			v.name = "$"
		case strings.HasPrefix(after, "{"):
			n = closingBrace(after) + 1
			if n > 0 {
				v.name, v.word, v.hasDefault = strings.Cut(after[1:n-1], ":-")
			}
		default:
			n = nameLen(after)
			v.name = after[:n]
		}
		if !v.valid() {
			return "", errors.New(`"$" without a variable's name (a dollar sign is "$$")`)
		}
		text, err := value(v)
		if err != nil {
			return "", err
		}
		done = done + before + text
		s = after[n:]
	}
}

// nameLen returns the length of the variable's name with which s begins.
func nameLen(s string) int {
	i := 0
	for i < len(s) && (s[i] == '_' || 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z' || i > 0 && '0' <= s[i] && s[i] <= '9') {
		i++
	}
	return i
}

// closingBrace returns the index of the brace that closes the first one, or -1.
func closingBrace(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}

// literal escapes an absolute path, so that expanding it returns it unchanged.
func literal(p string) string { return strings.ReplaceAll(p, "$", "$$") }

// lookup returns a variable's value. An empty one counts as unset: "$CACHE/x" must never
// become "/x". PWD is the command's working directory, whatever the caller's PWD says.
func (v *view) lookup(name string) (string, error) {
	value := v.Getenv(name)
	switch name {
	case "$":
		return "$", nil
	case "PWD":
		value = v.Dir
	case cacheVariable:
		value = v.projectCache()
	case venvVariable:
		value = venv(&v.Host)
	case "HOME":
		value = cmp.Or(value, v.Home)
	}
	if value == "" {
		return "", fmt.Errorf("$%s %w", name, errUnset)
	}
	if hasControl(value) {
		return "", fmt.Errorf("$%s has a control character", name)
	}
	return value, nil
}
