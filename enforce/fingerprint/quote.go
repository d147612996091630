package fingerprint

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// literalLimit is the longest string literal, in bytes, that a profile has.
// The reader of the TinyScheme interpreter that Seatbelt's compiler descends
// from keeps a literal in 256 bytes; longer texts are joined from parts.
const literalLimit = 200

// Quote writes s as a string of the profile language. Only the double quote and
// the backslash are special inside one; every other byte stands for itself. Go's
// %q and JSON write escapes that the language does not know, and the rule would
// then name another path without any error. What is not UTF-8, or has a control
// character, can't be written.
func Quote(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", errors.New("it is not valid UTF-8")
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return "", errors.New("it has a control character")
	}
	if len(s) <= literalLimit {
		return literal(s), nil
	}
	var parts []string
	for len(s) > literalLimit {
		n := literalLimit
		for !utf8.RuneStart(s[n]) {
			n--
		}
		parts = append(parts, literal(s[:n]))
		s = s[n:]
	}
	parts = append(parts, literal(s))
	return "(string-append " + strings.Join(parts, " ") + ")", nil
}

func literal(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
