package shell

import (
	"strings"
	"unicode"
)

// Quote writes a path for a POSIX shell.
func Quote(p string) string {
	if strings.IndexFunc(p, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/._-+,@", r)
	}) < 0 {
		return p
	}
	return "'" + strings.ReplaceAll(p, "'", `'\''`) + "'"
}
