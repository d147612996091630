package shell

import (
	"strconv"
	"strings"
)

// QuotePath is Quote for a path as policies write it: zsbx expands "~" as a shell does.
func QuotePath(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok && Quote(rest) == rest {
		return p
	}
	return Quote(p)
}

// Quote writes one word as a Bourne shell reads it, quoted if that is needed. Control
// characters and bytes that are not UTF-8 are escaped in $'...', which bash, zsh and ksh
// know, so that the name of a file or a process can't control a terminal.
func Quote(word string) string {
	plain := word != ""
	for _, r := range word {
		switch {
		case r == '\uFFFD' || !strconv.IsPrint(r):
			q := strconv.Quote(word)
			return "$'" + strings.ReplaceAll(strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`), "'", `\'`) + "'"
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_./=:,+@%^", r):
		default:
			plain = false
		}
	}
	if plain {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
