package tree

import (
	"fmt"
	"io"
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

// String names the kind in messages.
func (k Kind) String() string {
	return [...]string{"a fraction, a date or null", "a string", "an integer", "a boolean", "a list", "a table"}[k]
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

// Node is one value.
type Node struct {
	Kind   Kind
	form   tableForm
	Off    int // byte offset in the file
	Text   string
	Items  []*Node
	Fields []Field // a table's, in the order they were written
	index  map[string]int

	// From says where a value comes from in a tree that is to be written, in which
	// it becomes a comment; nil in one that was read.
	From fmt.Stringer
}

// Field is a key of a table.
type Field struct {
	Key string
	Off int // of the key
	Val *Node
}

// indexFrom is the number of keys from which a table gets an index.
const indexFrom = 16

// Add appends a key that the table does not have.
func (n *Node) Add(key string, off int, val *Node) *Node {
	if len(n.Fields) == indexFrom {
		n.index = make(map[string]int, 4*indexFrom)
		for i := range n.Fields {
			n.index[n.Fields[i].Key] = i
		}
	}
	if n.index != nil {
		n.index[key] = len(n.Fields)
	}
	n.Fields = append(n.Fields, Field{key, off, val})
	return val
}

// Get finds a key.
func (n *Node) Get(key string) *Node {
	if n.index != nil {
		if i, ok := n.index[key]; ok {
			return n.Fields[i].Val
		}
		return nil
	}
	for i := range n.Fields {
		if n.Fields[i].Key == key {
			return n.Fields[i].Val
		}
	}
	return nil
}

// Format is a way in which a tree is written down.
type Format struct {
	parse func(*builder) *Node
	write func(io.Writer, *Node) error
}

// The formats.
var (
	TOML = &Format{(*builder).toml, writeTOML}
	JSON = &Format{(*builder).json, writeJSON}
)

// Read gives the tree of a file, nil for none, or what is wrong with it.
func (f *Format) Read(data []byte) (*Node, []Mistake) {
	if m := checkText(data); m != nil {
		return nil, []Mistake{*m}
	}
	b := &builder{data: data}
	return f.parse(b), b.all
}

// Write writes the tree of a table.
func (f *Format) Write(w io.Writer, n *Node) error { return f.write(w, n) }

// MistakeKind tells what is wrong.
type MistakeKind uint8

// The kinds of a Mistake.
const (
	Syntax MistakeKind = iota
	Duplicate
	TooDeep
)

// Mistake is one thing that is wrong with a file.
type Mistake struct {
	Off  int // byte offset
	Kind MistakeKind
	Msg  string
}

// maxDepth bounds nesting: the format needs five levels.
const maxDepth = 16

// builder makes a tree of a document.
type builder struct {
	data []byte
	all  []Mistake
	slab []Node // not in use yet: one allocation for many
}

// node gives a new Node.
func (b *builder) node(off int, form tableForm) *Node {
	if len(b.slab) == 0 {
		b.slab = make([]Node, 32)
	}
	n := &b.slab[0]
	b.slab = b.slab[1:]
	n.Off, n.form = off, form
	return n
}

func (b *builder) fail(off int, kind MistakeKind, format string, args ...any) {
	b.all = append(b.all, Mistake{off, kind, fmt.Sprintf(format, args...)})
}

func (b *builder) twice(off int, key string) { b.fail(off, Duplicate, "%s is given twice", key) }
