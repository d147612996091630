package tree

import (
	"bytes"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// Places turns byte offsets into lines and columns. Offsets come nearly in
// order, so it goes on from the last one where it can: a file of one line
// with ten thousand rules must not be counted ten thousand times.
type Places struct {
	data              []byte
	off, line, column int // the last place asked for
}

// NewPlaces are those of a file.
func NewPlaces(data []byte) *Places { return &Places{data, 0, 1, 1} }

// At gives the line of a byte offset and its column, in characters, both from 1 on.
func (l *Places) At(off int) (int, int) {
	off = min(max(off, 0), len(l.data))
	if off < l.off {
		*l = *NewPlaces(l.data)
	}
	between := l.data[l.off:off]
	if end := bytes.LastIndexByte(between, '\n'); end >= 0 {
		l.line, l.column = l.line+bytes.Count(between, []byte{'\n'}), 1
		between = between[end+1:]
	}
	l.off, l.column = off, l.column+utf8.RuneCount(between)
	return l.line, l.column
}

// checkText looks at a whole file for what neither format allows: text that
// is not UTF-8, and characters that hide something from whoever reads the
// file, in comments too, a byte order mark among them. The result is nil when it is fine.
func checkText(data []byte) *Mistake {
	for i := 0; i < len(data); {
		if data[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return &Mistake{i, Syntax, "invalid UTF-8"}
		case isHidden(r):
			return &Mistake{i, Syntax, fmt.Sprintf("the character U+%04X, which can't be seen, or changes how the text around it is shown", r)}
		}
		i += n
	}
	return nil
}

// isHidden reports characters by which a file is not what it looks like: those
// that steer the direction of writing, end a line for some programs only, or
// have no width (Unicode's Default_Ignorable_Code_Point, and the separators of
// lines and paragraphs), the pattern of Braille without a dot, which is a space to
// the eye, and the controls from U+0080 on, by which terminals are steered as by
// escape sequences. The two that choose between the looks of an emoji hide
// nothing.
func isHidden(r rune) bool {
	if r == '\uFE0E' || r == '\uFE0F' {
		return false
	}
	if r == '\u2800' || '\u0080' <= r && r <= '\u009F' {
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// IsControl reports characters that have no business in a path or a name:
// they would end a line of output early, or hide what follows.
func IsControl(r rune) bool {
	return r < 0x20 || 0x7f <= r && r < 0xa0
}
