package fingerprint

import (
	"regexp"
	"strings"
)

// foreign matches characters outside ASCII, which may stand for letters.
const foreign = "[^ -~]+"

// pairs are pairs of letters that one character outside ASCII may stand for, when case is
// ignored (Unicode's CaseFolding.txt). The single letters of that kind are k and s.
var pairs = []string{"ff", "fi", "fl", "ss", "st"}

// Fold returns a regular expression for a path and all below it, in any spelling. The kernel
// checks a new file by the name that the command gives, and most volumes of a Mac ignore case.
// Others measured that rules ignore case by themselves since macOS 26.5 at the latest; nothing is
// known of earlier releases.
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
		n := 1
		letters := letter(path[:1])
		for _, p := range pairs {
			if len(path) > 1 && strings.EqualFold(path[:2], p) {
				n = 2
				letters = "(" + letters + letter(path[1:2]) + "|" + foreign + ")"
			}
		}
		b.WriteString(letters)
		path = path[n:]
	}
	return b.String() + "(/.*)?$"
}

// letter returns an expression for an ASCII character in both cases.
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
