package tree

import (
	"errors"

	"github.com/pelletier/go-toml/v2/unstable"
)

// toml gives the tree of a document. The parser knows the syntax; which tables may be
// defined or added to where is decided here, as https://toml.io/en/v1.0.0#table says.
func (b *builder) toml() *Node {
	root := &Node{Kind: Table, form: headerTable}
	current := root // the table that keys go to; nil after a wrong header: they would only repeat that
	var p unstable.Parser
	p.Reset(b.data)
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			current = b.header(root, e)
		case unstable.KeyValue:
			b.keyValue(current, e, 0)
		}
	}
	if err := p.Error(); err != nil {
		off := len(b.data)
		var pe *unstable.ParserError
		if errors.As(err, &pe) && pe.Highlight != nil {
			off = cap(b.data) - cap(pe.Highlight)
		}
		b.fail(off, Syntax, "%s", err.Error())
	}
	return root
}

// header handles [a.b] and [[a.b]], and gives the table, nil for a wrong one.
func (b *builder) header(root *Node, e *unstable.Node) *Node {
	t, key, off := b.above(root, e, implicitTable)
	if t == nil {
		return nil
	}
	old, table, list := t.Get(key), &Node{Kind: Table, form: headerTable, Off: off}, e.Kind == unstable.ArrayTable
	switch {
	case old == nil && list:
		t.Add(key, off, &Node{Kind: Array, form: headerTable, Off: off, Items: []*Node{table}})
	case old == nil:
		t.Add(key, off, table)
	case list && old.Kind == Array && old.form == headerTable:
		old.Items = append(old.Items, table)
	case !list && old.Kind == Table && old.form == implicitTable:
		old.form, table = headerTable, old
	default:
		return b.twice(off, key)
	}
	return table
}

// above gives the table that a dotted name leads to from t, nil for none, and the last
// part of the name. Tables that are not there are made with the given form.
func (b *builder) above(t *Node, e *unstable.Node, form tableForm) (table *Node, key string, off int) {
	for k := e.Key(); t != nil && k.Next(); {
		key, off = string(k.Node().Data), int(k.Node().Raw.Offset)
		if k.IsLast() {
			break
		}
		switch old := t.Get(key); {
		case old == nil:
			t = t.Add(key, off, &Node{Kind: Table, form: form, Off: off})
		case old.Kind == Table && old.form != closedTable && (form == implicitTable || old.form == form):
			t = old
		case old.Kind == Array && old.form == headerTable && form == implicitTable:
			t = old.Items[len(old.Items)-1]
		default:
			t = b.twice(off, key)
		}
	}
	return t, key, off
}

// keyValue handles key = value and a.b = value within a table.
func (b *builder) keyValue(t *Node, e *unstable.Node, depth int) {
	t, key, off := b.above(t, e, dottedTable)
	switch {
	case t == nil:
	case t.Get(key) != nil:
		b.twice(off, key)
	default:
		t.Add(key, off, b.value(e.Value(), off, depth))
	}
}

// value makes a node of a value; off is where it stands unless the parser
// knows better.
func (b *builder) value(v *unstable.Node, off, depth int) *Node {
	if v.Raw.Length > 0 {
		off = int(v.Raw.Offset)
	}
	n := &Node{Off: off, form: closedTable}
	if depth > maxDepth {
		b.fail(off, TooDeep, "nested too deeply")
		return n
	}
	switch v.Kind {
	case unstable.String:
		n.Kind, n.Text = String, string(v.Data)
	case unstable.Integer:
		n.Kind, n.Text = Integer, string(v.Data)
	case unstable.Bool:
		n.Kind, n.Text = Bool, string(v.Data)
	case unstable.Array:
		n.Kind = Array
		for it := v.Children(); it.Next(); {
			n.Items = append(n.Items, b.value(it.Node(), off, depth+1))
		}
	case unstable.InlineTable:
		n.Kind, n.form = Table, dottedTable
		for it := v.Children(); it.Next(); {
			b.keyValue(n, it.Node(), depth+1)
		}
		n.form = closedTable
	}
	return n
}
