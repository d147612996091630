package fingerprint

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// literalLimit is the longest string literal in a profile, in bytes. Longer texts are joined
// from parts: Seatbelt's compiler descends from TinyScheme, whose reader has a buffer of 256
// bytes for a literal.
const literalLimit = 200

// Quote returns s as a string in the profile language. Only the double quote and the backslash
// are special in one; every other byte stands for itself. Go's %q and JSON use escapes that the
// language does not know, so a rule would name another path, without an error. Quote refuses
// invalid UTF-8 and control characters.
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
