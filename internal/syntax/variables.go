package syntax

import (
	"errors"
	"fmt"
	"strings"
)

// checkVariables returns what is wrong with the variables in a path.
func checkVariables(s string) error {
	_, err := ReplaceVariables(s, func(Variable) (string, error) { return "", nil })
	if err != nil {
		err = fmt.Errorf("path %q: %w", s, err)
	}
	return err
}

// Variable is a reference to one in a path.
type Variable struct {
	Name       string // "$" for a second dollar sign
	Word       string // of ${NAME:-word}
	HasDefault bool
}

// valid reports whether the name is one of a variable, and the word has no mistake.
func (v *Variable) valid() bool {
	if v.Name == "$" {
		return true
	}
	if v.Name == "" || NameLen(v.Name) < len(v.Name) {
		return false
	}
	return !strings.Contains(v.Word, "$") || checkVariables(v.Word) == nil
}

// ReplaceVariables replaces each variable in a path with what value returns for it.
func ReplaceVariables(s string, value func(Variable) (string, error)) (string, error) {
	done := ""
	for {
		before, after, found := strings.Cut(s, "$")
		if !found {
			return done + s, nil
		}
		v := Variable{}
		n := 1
		switch {
		case strings.HasPrefix(after, "$"):
			v.Name = "$"
		case strings.HasPrefix(after, "{"):
			n = closingBrace(after) + 1
			if n > 0 {
				v.Name, v.Word, v.HasDefault = strings.Cut(after[1:n-1], ":-")
			}
		default:
			n = NameLen(after)
			v.Name = after[:n]
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

// NameLen returns the length of the variable's name with which s begins.
func NameLen(s string) int {
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

// Literal escapes an absolute path, so that expanding it returns it unchanged.
func Literal(p string) string { return strings.ReplaceAll(p, "$", "$$") }
