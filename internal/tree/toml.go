package tree

import (
	"bytes"
	"errors"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// toml returns the tree of a document. go-toml finds what is wrong with it, but only the
// first mistake. Its values have no positions, so the tree is made from its parser's.
func (b *builder) toml() *Node {
	root := &Node{Kind: Table}
	current := root
	var p unstable.Parser
	p.Reset(b.data)
	for p.NextExpression() {
		switch e := p.Expression(); e.Kind {
		case unstable.Table:
			current = b.named(root, e)
		case unstable.ArrayTable:
			list := b.named(root, e)
			current = &Node{Kind: Table, Off: list.Off}
			list.Kind = Array
			list.Items = append(list.Items, current)
		case unstable.KeyValue:
			b.keyValue(current, e, 0)
		}
	}
	switch {
	case b.names > maxNames:
		b.fail(0, TooLarge, "more than %d keys", maxNames)
	case b.all == nil: // otherwise it is nested too deeply
		b.check()
	}
	return root
}

// maxNames bounds the names of keys and tables: to find one that is given twice,
// go-toml compares each with all others.
const maxNames = 20_000

// check notes the first mistake that go-toml finds.
func (b *builder) check() {
	var all map[string]any
	err := toml.Unmarshal(b.data, &all)
	if err == nil {
		return
	}
	off := 0
	kind := Syntax
	if de := (*toml.DecodeError)(nil); errors.As(err, &de) {
		row, column := de.Position()
		for range row - 1 {
			off += bytes.IndexByte(b.data[off:], '\n') + 1
		}
		off += column - 1
		if len(de.Key()) > 0 {
			kind = Duplicate
		}
	}
	b.fail(off, kind, "%s", strings.TrimPrefix(err.Error(), "toml: "))
}

// named returns what the name of an expression stands for in a table, or in the last table
// of a list. It makes what is missing.
func (b *builder) named(n *Node, e *unstable.Node) *Node {
	for k := e.Key(); k.Next(); b.names++ {
		if n.Kind == Array && len(n.Items) > 0 {
			n = n.Items[len(n.Items)-1]
		}
		name := string(k.Node().Data)
		off := int(k.Node().Raw.Offset)
		if n.Get(name) == nil {
			n.Add(name, off, &Node{Kind: Table, Off: off})
		}
		n = n.Get(name)
	}
	return n
}

// keyValue handles key = value and a.b = value within a table.
func (b *builder) keyValue(t *Node, e *unstable.Node, depth int) {
	n := b.named(t, e)
	*n = *b.value(e.Value(), n.Off, depth)
}

// value makes a node of a value. off is its position, unless the parser has a better one.
func (b *builder) value(v *unstable.Node, off, depth int) *Node {
	if v.Raw.Length > 0 {
		off = int(v.Raw.Offset)
	}
	n := &Node{Off: off}
	if depth > maxDepth {
		b.fail(off, TooDeep, "nested too deeply")
		return n
	}
	switch v.Kind {
	case unstable.String:
		n.Kind = String
		n.Text = string(v.Data)
	case unstable.Integer:
		n.Kind = Integer
		n.Text = string(v.Data)
	case unstable.Bool:
		n.Kind = Bool
		n.Text = string(v.Data)
	case unstable.Array:
		n.Kind = Array
		for it := v.Children(); it.Next(); {
			n.Items = append(n.Items, b.value(it.Node(), off, depth+1))
		}
	case unstable.InlineTable:
		n.Kind = Table
		for it := v.Children(); it.Next(); {
			b.keyValue(n, it.Node(), depth+1)
		}
	}
	return n
}
