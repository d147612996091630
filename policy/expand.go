package policy

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// expander turns a path as written into an absolute one, lexically: "~",
// "cwd" and variables are replaced, what is relative is taken from the
// working directory, "." and ".." are removed. Symbolic links are the
// walker's.
type expander struct{ host *Host }

// errNoHome says that "~" stands for nothing.
var errNoHome = errors.New("the home directory is not known (HOME is not set)")

// unsetError says that a path uses a variable that has no value.
type unsetError struct{ name string }

func (e *unsetError) Error() string {
	return fmt.Sprintf("$%s is not set, or empty", e.name)
}

// absolute expands a path as written in a rule.
func (x *expander) absolute(s string) (string, error) {
	if err := checkPath(s); err != nil {
		return "", err
	}
	return x.expand(s)
}

// expand is absolute without the checks of the spelling.
func (x *expander) expand(s string) (string, error) {
	if s[0] == '/' && strings.IndexByte(s, '$') < 0 {
		return path.Clean(s), nil
	}
	if strings.Contains(s, ":-") {
		s = expandDefault(x.host, s)
	}
	base, rest, err := x.base(s)
	if err != nil {
		return "", err
	}
	rest, err = x.variables(rest, nil)
	if err != nil {
		return "", err
	}
	switch {
	case base != "" && rest == "":
		return path.Clean(base), nil
	case base != "":
		return path.Clean(base + "/" + rest), nil
	case strings.HasPrefix(rest, "/"):
		return path.Clean(rest), nil
	}
	return path.Clean(x.host.Dir + "/" + rest), nil
}

// base takes "~" and "cwd" off a path. They must be whole names, and the
// first one: a file of that name in the working directory is "./~" or
// "./cwd".
func (x *expander) base(s string) (base, rest string, err error) {
	first, rest, _ := strings.Cut(s, "/")
	switch first {
	case "~":
		if x.host.Home == "" {
			return "", "", fmt.Errorf("%s: %w", s, errNoHome)
		}
		return x.host.Home, rest, nil
	case "cwd":
		return x.host.Dir, rest, nil
	}
	return "", s, nil
}

// checkVariables says what is wrong with the variables of a path.
func checkVariables(s string) error {
	for rest := s; ; {
		i := strings.IndexByte(rest, '$')
		if i < 0 {
			return nil
		}
		_, n := variableName(rest[i+1:])
		if n == 0 {
			n = defaultLen(rest[i+1:])
		}
		if n == 0 {
			return fmt.Errorf(`path %q: "$" without a variable's name (a dollar sign is "$$")`, s)
		}
		rest = rest[i+1+n:]
	}
}

// defaultLen is the length of {NAME:-word} at the start of s, or 0.
func defaultLen(s string) int {
	if !strings.HasPrefix(s, "{") {
		return 0
	}
	end := closingBrace(s, 1)
	if end < 0 {
		return 0
	}
	name, word, ok := strings.Cut(s[1:end], ":-")
	if got, n := variableName(name); !ok || n == 0 || got != name || checkVariables(word) != nil {
		return 0
	}
	return end + 1
}

// variableName reads what follows a dollar sign: NAME, {NAME}, or a second
// dollar sign, which is the name "$". N is the length of it, 0 if there is no
// name.
func variableName(s string) (name string, n int) {
	if strings.HasPrefix(s, "$") {
		return "$", 1
	}
	braces := strings.HasPrefix(s, "{")
	if braces {
		s = s[1:]
	}
	i := 0
	for i < len(s) && (s[i] == '_' || 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z' || i > 0 && '0' <= s[i] && s[i] <= '9') {
		i++
	}
	switch {
	case i == 0, braces && !strings.HasPrefix(s[i:], "}"):
		return "", 0
	case braces:
		return s[:i], i + 2
	}
	return s[:i], i
}

// variables replaces $NAME and ${NAME} by their values and $$ by a dollar
// sign. Values are not expanded again; quote, when not nil, is applied to
// them.
func (x *expander) variables(s string, quote func(string) string) (string, error) {
	i := strings.IndexByte(s, '$')
	if i < 0 {
		return s, nil
	}
	var b strings.Builder
	for ; i >= 0; i = strings.IndexByte(s, '$') {
		name, n := variableName(s[i+1:])
		if n == 0 {
			return "", checkVariables(s)
		}
		value, err := x.lookup(name)
		if err != nil {
			return "", err
		}
		if quote != nil {
			value = quote(value)
		}
		b.WriteString(s[:i])
		b.WriteString(value)
		s = s[i+1+n:]
	}
	b.WriteString(s)
	return b.String(), nil
}

// literal writes an absolute path so that expanding it gives it back.
func literal(p string) string { return strings.ReplaceAll(p, "$", "$$") }

// lookup gives a variable's value. One that is empty counts as unset:
// "$CACHE/x" must never become "/x". PWD is the command's working directory,
// whatever the caller's says.
func (x *expander) lookup(name string) (string, error) {
	switch name {
	case "$":
		return "$", nil
	case "PWD":
		return x.host.Dir, nil
	case cacheVariable:
		if dir := x.host.ownCache(); dir != "" {
			return dir, nil
		}
		return "", &unsetError{name}
	}
	value := x.host.Getenv(name)
	if value == "" && name == "HOME" {
		value = x.host.Home
	}
	if value == "" {
		return "", &unsetError{name}
	}
	if hasControl(value) {
		return "", fmt.Errorf("$%s has a control character", name)
	}
	return value, nil
}
