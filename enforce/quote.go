package enforce

import (
	"strings"
	"unicode"
)

// quoteWord writes a path for a POSIX shell.
func quoteWord(p string) string {
	if strings.IndexFunc(p, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,@", r)
	}) < 0 {
		return p
	}
	return "'" + strings.ReplaceAll(p, "'", `'\''`) + "'"
}
