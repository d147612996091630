package track

import (
	"strconv"
	"strings"
)

// CommandLine writes argv for people: one line of at most width bytes (0 for
// no limit), arguments quoted as a Bourne shell reads them where that is
// needed. Control characters and bytes that are no UTF-8 are escaped, so that
// what a process calls itself can't write to a terminal.
func CommandLine(argv []string, width int) string {
	var b strings.Builder
	for i, a := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(quoteArg(a))
		if width > 0 && b.Len() > width {
			return clip(b.String(), width)
		}
	}
	return b.String()
}

// clip shortens s to width bytes with an ellipsis, at a rune's boundary.
func clip(s string, width int) string {
	n := 0
	for i := range s {
		if i > width-3 {
			break
		}
		n = i
	}
	return s[:n] + "..."
}

func quoteArg(a string) string {
	plain := a != ""
	for _, r := range a {
		switch {
		case r == '\uFFFD' || !strconv.IsPrint(r):
			q := strconv.Quote(a)
			return "$'" + strings.ReplaceAll(strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`), "'", `\'`) + "'"
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_./=:,+@%^", r):
		default:
			plain = false
		}
	}
	if plain {
		return a
	}
	return "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
}
