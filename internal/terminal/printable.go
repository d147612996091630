package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/internal/object"
)

// Printable escapes what could control a terminal: names come from files and
// directories that somebody else made.
func Printable(s string) string {
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
