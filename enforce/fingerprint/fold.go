package fingerprint

import (
	"regexp"
	"strings"
)

// foreign is what may stand for letters: a run outside of ASCII.
const foreign = "[^ -~]+"

// pairs are the letters for which one character outside of ASCII may stand, where case
// does not count (CaseFolding.txt of Unicode). Single ones are k and s.
var pairs = []string{"ff", "fi", "fl", "ss", "st"}

// Fold is a regular expression for a path and all below it, however its letters are
// written: the kernel asks about what is to be made with the name that the command
// gives, and most volumes of a Mac find it by every spelling.
func Fold(path string) string {
	var b strings.Builder
	b.WriteByte('^')
	for path != "" {
		rest := strings.TrimLeftFunc(path, func(r rune) bool { return r >= 0x80 })
		if rest != path {
			b.WriteString(foreign)
			path = rest
			continue
		}
		n, letters := 1, letter(path[:1])
		for _, p := range pairs {
			if len(path) > 1 && strings.EqualFold(path[:2], p) {
				n, letters = 2, "("+letters+letter(path[1:2])+"|"+foreign+")"
			}
		}
		b.WriteString(letters)
		path = path[n:]
	}
	return b.String() + "(/.*)?$"
}

// letter is one character of ASCII in both cases.
func letter(s string) string {
	lower := strings.ToLower(s)
	switch class := "[" + lower + strings.ToUpper(s) + "]"; {
	case lower == strings.ToUpper(s):
		return regexp.QuoteMeta(s)
	case lower == "k", lower == "s":
		return "(" + class + "|" + foreign + ")"
	default:
		return class
	}
}
