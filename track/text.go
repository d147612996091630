package track

import (
	"strings"

	"github.com/zsbx/zsbx/policy/shell"
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
		b.WriteString(shell.Quote(a))
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
