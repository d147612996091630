package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zsbx/zsbx/internal/object"
)

// Printable escapes what could control a terminal: names come from files and
// directories that somebody else made.
func Printable(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && s[i] != "\uFFFD"[0]:
			fmt.Fprintf(&b, `\x%02x`, s[i]) // not UTF-8: 0x9b alone begins a sequence, too
		case r != '\t' && object.Hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// plain reports whether a text has only characters of ASCII that are shown as they are.
func plain(s string) bool {
	for i := range len(s) {
		if (s[i] < ' ' || s[i] >= unicode.MaxASCII) && s[i] != '\t' {
			return false
		}
	}
	return true
}
