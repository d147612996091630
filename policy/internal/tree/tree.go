package tree

import "fmt"

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

// Read gives the tree of a file in JSON or TOML, nil for none, or what is wrong with it.
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
