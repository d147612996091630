package tree

import (
	"errors"

	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlBuilder makes a tree of a TOML document. The parser knows the syntax;
// which tables may be defined or added to where is decided here, as
// https://toml.io/en/v1.0.0#table says.
type tomlBuilder struct {
	*builder
	root    *Node
	current *Node // the table that keys go to
	skip    bool  // the header was wrong: its keys would only repeat that
}

// toml gives the tree of a document.
func (doc *builder) toml() *Node {
	b := &tomlBuilder{builder: doc, root: &Node{Kind: Table, form: headerTable}}
	b.current = b.root
	var p unstable.Parser
	p.Reset(b.data)
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			b.header(e)
		case unstable.KeyValue:
			if !b.skip {
				b.keyValue(b.current, e, 0)
			}
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
	return b.root
}

// header handles [a.b] and [[a.b]].
func (b *tomlBuilder) header(e *unstable.Node) {
	b.skip = true
	t := b.root
	for k := e.Key(); k.Next(); {
		key, off := string(k.Node().Data), int(k.Node().Raw.Offset)
		old := t.Get(key)
		if !k.IsLast() {
			if t = b.descend(t, old, key, off, implicitTable); t == nil {
				return
			}
			continue
		}
		switch {
		case e.Kind == unstable.ArrayTable:
			t = b.element(t, old, key, off)
		case old == nil:
			t = t.Add(key, off, &Node{Kind: Table, form: headerTable, Off: off})
		case old.Kind == Table && old.form == implicitTable:
			old.form = headerTable
			t = old
		default:
			b.twice(off, key)
			return
		}
		if t == nil {
			return
		}
	}
	b.current, b.skip = t, false
}

// element adds a table to the list that [[key]] names.
func (b *tomlBuilder) element(t, list *Node, key string, off int) *Node {
	if list == nil {
		list = t.Add(key, off, &Node{Kind: Array, form: headerTable, Off: off})
	} else if list.Kind != Array || list.form != headerTable {
		b.twice(off, key)
		return nil
	}
	n := &Node{Kind: Table, form: headerTable, Off: off}
	list.Items = append(list.Items, n)
	return n
}

// descend gives the table below t that a dotted name goes through, making it
// with the given form when it is not there.
func (b *tomlBuilder) descend(t, old *Node, key string, off int, form tableForm) *Node {
	switch {
	case old == nil:
		return t.Add(key, off, &Node{Kind: Table, form: form, Off: off})
	case old.Kind == Table && old.form == closedTable:
	case old.Kind == Table && (form == implicitTable || old.form == form):
		return old
	case old.Kind == Array && old.form == headerTable && form == implicitTable:
		return old.Items[len(old.Items)-1]
	}
	b.twice(off, key)
	return nil
}

// keyValue handles key = value and a.b = value within a table.
func (b *tomlBuilder) keyValue(t *Node, e *unstable.Node, depth int) {
	for k := e.Key(); k.Next(); {
		key, off := string(k.Node().Data), int(k.Node().Raw.Offset)
		old := t.Get(key)
		if !k.IsLast() {
			if t = b.descend(t, old, key, off, dottedTable); t == nil {
				return
			}
			continue
		}
		if old != nil {
			b.twice(off, key)
			return
		}
		t.Add(key, off, b.value(e.Value(), off, depth))
	}
}

// value makes a node of a value; off is where it stands unless the parser
// knows better.
func (b *tomlBuilder) value(v *unstable.Node, off, depth int) *Node {
	if v.Raw.Length > 0 {
		off = int(v.Raw.Offset)
	}
	n := b.node(off, closedTable)
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
		n.close()
	}
	return n
}

// close makes an inline table and the dotted ones within complete.
func (n *Node) close() {
	n.form = closedTable
	for _, f := range n.Fields {
		if f.Val.Kind == Table && f.Val.form == dottedTable {
			f.Val.close()
		}
	}
}
