package policy

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A file becomes a tree first, whatever it is written in, and one checker
// makes the tree a Policy. So TOML and JSON cannot mean different things.

// nodeKind is the type of a value in a policy file.
type nodeKind uint8

const (
	otherNode   nodeKind = iota // what no key takes: a float, a date, null
	stringNode                  // text has its value
	integerNode                 // text has its digits
	boolNode                    // text is "true" or "false"
	arrayNode
	tableNode
)

// String names the kind in messages.
func (k nodeKind) String() string {
	switch k {
	case stringNode:
		return "a string"
	case integerNode:
		return "an integer"
	case boolNode:
		return "a boolean"
	case arrayNode:
		return "a list"
	case tableNode:
		return "a table"
	}
	return "a fraction, a date or null"
}

// tableForm says how TOML defined a table, which decides whether it may be
// added to later on.
type tableForm uint8

const (
	implicitTable tableForm = iota // by [a.b], for a
	headerTable                    // by [a]
	dottedTable                    // by a.b = 1, for a
	closedTable                    // by { }: complete
)

// node is one value.
type node struct {
	kind   nodeKind
	form   tableForm
	off    int    // byte offset in the file
	text   string // string, integer, boolean
	items  []*node
	fields []field // a table's, in the order they were written
	index  map[string]int
}

// field is a key of a table.
type field struct {
	key string
	off int // of the key
	val *node
}

// indexFrom is the number of keys from which a table gets an index.
const indexFrom = 16

// add appends a key that the table does not have.
func (n *node) add(key string, off int, val *node) *node {
	if len(n.fields) == indexFrom {
		n.index = make(map[string]int, 4*indexFrom)
		for i := range n.fields {
			n.index[n.fields[i].key] = i
		}
	}
	if n.index != nil {
		n.index[key] = len(n.fields)
	}
	n.fields = append(n.fields, field{key, off, val})
	return val
}

// get finds a key.
func (n *node) get(key string) *node {
	if n.index != nil {
		if i, ok := n.index[key]; ok {
			return n.fields[i].val
		}
		return nil
	}
	for i := range n.fields {
		if n.fields[i].key == key {
			return n.fields[i].val
		}
	}
	return nil
}

// locator turns byte offsets into lines and columns. Offsets come nearly in
// order, so it goes on from the last one where it can: a file of one line
// with ten thousand rules must not be counted ten thousand times.
type locator struct {
	source string
	data   []byte
	starts []int // offset of each line

	line, off, col int // the last place asked for
}

func newLocator(source string, data []byte) *locator {
	l := &locator{source: source, data: data, starts: make([]int, 1, 1+bytes.Count(data, []byte{'\n'})), line: -1}
	for i, c := range data {
		if c == '\n' {
			l.starts = append(l.starts, i+1)
		}
	}
	return l
}

// at gives the origin of what stands at a byte offset.
func (l *locator) at(off int) Origin {
	off = min(max(off, 0), len(l.data))
	line := sort.SearchInts(l.starts, off+1) - 1
	if line != l.line || off < l.off {
		l.line, l.off, l.col = line, l.starts[line], 1
	}
	l.col += utf8.RuneCount(l.data[l.off:off])
	l.off = off
	return Origin{Source: l.source, Line: line + 1, Column: l.col}
}

// checkText looks at a whole file for what neither format allows: text that
// is not UTF-8, a byte order mark, NUL, and characters that hide something from whoever reads the
// file, in comments too. The result is nil when it is fine.
func (l *locator) checkText() *Error {
	if i := bytes.IndexByte(l.data, 0); i >= 0 {
		return &Error{Origin: l.at(i), Code: CodeSyntax, Msg: "a NUL byte: this is not a text file"}
	}
	if bytes.HasPrefix(l.data, []byte("\uFEFF")) {
		return &Error{Origin: l.at(0), Code: CodeSyntax, Msg: "the file begins with a byte order mark, which an editor put there: save it as UTF-8 without one"}
	}
	for i := 0; i < len(l.data); {
		if l.data[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(l.data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return &Error{Origin: l.at(i), Code: CodeSyntax, Msg: "invalid UTF-8"}
		case isHidden(r):
			return &Error{Origin: l.at(i), Code: CodeSyntax,
				Msg: fmt.Sprintf("the character U+%04X, which can't be seen, or changes how the text around it is shown", r)}
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

// isControl reports characters that have no business in a path or a name:
// they would end a line of output early, or hide what follows.
func isControl(r rune) bool {
	return r < 0x20 || 0x7f <= r && r < 0xa0
}

// hasControl reports whether s has a control character.
func hasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return strings.IndexFunc(s[i:], isControl) >= 0
		}
	}
	return false
}
