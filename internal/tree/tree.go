package tree

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/internal/object"
)

// Kind is the type of a value in a policy file.
type Kind uint8

// The kinds. Text has the value of a String, the digits of an Integer, and "true"
// or "false" of a Bool.
const (
	Other Kind = iota // what no key takes: a float, a date, null
	String
	Integer
	Bool
	Array
	Table
)

func (k Kind) String() string {
	return [...]string{"a fraction, a date or null", "a string", "an integer", "a boolean", "a list", "a table"}[k]
}

// Node is one value.
type Node struct {
	Kind   Kind
	Off    int // byte offset in the file
	Text   string
	Items  []*Node
	Fields []Field // a table's, in the order they were written
	index  map[string]*Node
}

// Field is a key of a table.
type Field struct {
	Key string
	Off int // of the key
	Val *Node
}

// Add appends a key that the table does not have.
func (n *Node) Add(key string, off int, val *Node) {
	if n.index == nil {
		n.index = make(map[string]*Node)
	}
	n.index[key] = val
	n.Fields = append(n.Fields, Field{key, off, val})
}

func (n *Node) Get(key string) *Node { return n.index[key] }

// Read returns the tree of a file in JSON or TOML, and what is wrong with it. The tree is
// nil if there is none.
func Read(isJSON bool, data []byte) (*Node, []Mistake) {
	if m := checkText(data); m != nil {
		return nil, []Mistake{*m}
	}
	b := &builder{data: data}
	if isJSON {
		return b.json(), b.all
	}
	return b.toml(), b.all
}

// The kinds of a Mistake, as package policy's codes are written.
const (
	Syntax    = "syntax"
	Duplicate = "duplicate-key"
	TooDeep   = "bad-value"
	TooLarge  = "too-large"
)

// Mistake is one thing that is wrong with a file.
type Mistake struct {
	Off  int // byte offset
	Kind string
	Msg  string
}

// maxDepth bounds nesting: the format needs five levels.
const maxDepth = 16

// builder makes a tree of a document.
type builder struct {
	data  []byte
	all   []Mistake
	names int // of keys and tables
}

func (b *builder) fail(off int, kind, format string, args ...any) {
	b.all = append(b.all, Mistake{off, kind, fmt.Sprintf(format, args...)})
}

// Positions turns byte offsets into lines and columns. Offsets come nearly in order, so it
// goes on from the last one if it can: otherwise a line with ten thousand rules would be
// counted ten thousand times.
type Positions struct {
	data              []byte
	off, line, column int // the last position asked for
}

// NewPositions returns the positions of a file.
func NewPositions(data []byte) *Positions { return &Positions{data, 0, 1, 1} }

// At returns the line of a byte offset and its column, in characters, both from 1 on.
func (l *Positions) At(off int) (int, int) {
	off = min(max(off, 0), len(l.data))
	if off < l.off {
		*l = *NewPositions(l.data)
	}
	between := l.data[l.off:off]
	if end := bytes.LastIndexByte(between, '\n'); end >= 0 {
		l.line += bytes.Count(between, []byte{'\n'})
		l.column = 1
		between = between[end+1:]
	}
	l.column += utf8.RuneCount(between)
	l.off = off
	return l.line, l.column
}

// checkText looks for what neither format allows in a file, comments included: text that
// is not UTF-8, and characters that hide something from a reader, such as a byte order
// mark. It returns nil if there is none.
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
		case object.Hidden(r):
			text := "the character U+%04X, which can't be seen, or changes how the text around it is shown"
			return &Mistake{i, Syntax, fmt.Sprintf(text, r)}
		}
		i += n
	}
	return nil
}

// QuoteTOML writes a string as a basic string of TOML (https://toml.io/en/v1.0.0#string),
// with escapes for characters that could control a terminal.
func QuoteTOML(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case object.Hidden(r):
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}
