package policy

import (
	"errors"
	"fmt"

	"github.com/pelletier/go-toml/v2/unstable"
)

// maxDepth bounds nesting: the format needs five levels.
const maxDepth = 16

// tomlBuilder makes a tree of a TOML document. The parser knows the syntax;
// which tables may be defined or added to where is decided here, as
// https://toml.io/en/v1.0.0#table says.
type tomlBuilder struct {
	loc     *locator
	root    *node
	current *node // the table that keys go to
	skip    bool  // the header was wrong: its keys would only repeat that
	errs    Errors
}

// parseTOML gives the tree of a document, or what is wrong with it.
func parseTOML(loc *locator) (*node, Errors) {
	b := &tomlBuilder{loc: loc, root: &node{kind: tableNode, form: headerTable}}
	b.current = b.root
	var p unstable.Parser
	p.Reset(loc.data)
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
		off := len(loc.data)
		var pe *unstable.ParserError
		if errors.As(err, &pe) && pe.Highlight != nil {
			off = cap(loc.data) - cap(pe.Highlight)
		}
		b.fail(off, CodeSyntax, "%s", err.Error())
	}
	return b.root, b.errs
}

func (b *tomlBuilder) fail(off int, code Code, format string, args ...any) {
	b.errs = append(b.errs, &Error{Origin: b.loc.at(off), Code: code, Msg: fmt.Sprintf(format, args...)})
}

// header handles [a.b] and [[a.b]].
func (b *tomlBuilder) header(e *unstable.Node) {
	b.skip = true
	t := b.root
	for k := e.Key(); k.Next(); {
		key, off := string(k.Node().Data), int(k.Node().Raw.Offset)
		old := t.get(key)
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
			t = t.add(key, off, &node{kind: tableNode, form: headerTable, off: off})
		case old.kind == tableNode && old.form == implicitTable:
			old.form = headerTable
			t = old
		default:
			b.fail(off, CodeDuplicate, "%s is given twice", key)
			return
		}
		if t == nil {
			return
		}
	}
	b.current, b.skip = t, false
}

// element adds a table to the list that [[key]] names.
func (b *tomlBuilder) element(t, list *node, key string, off int) *node {
	if list == nil {
		list = t.add(key, off, &node{kind: arrayNode, form: headerTable, off: off})
	} else if list.kind != arrayNode || list.form != headerTable {
		b.fail(off, CodeDuplicate, "%s is given twice", key)
		return nil
	}
	n := &node{kind: tableNode, form: headerTable, off: off}
	list.items = append(list.items, n)
	return n
}

// descend gives the table below t that a dotted name goes through, making it
// with the given form when it is not there.
func (b *tomlBuilder) descend(t, old *node, key string, off int, form tableForm) *node {
	switch {
	case old == nil:
		return t.add(key, off, &node{kind: tableNode, form: form, off: off})
	case old.kind == tableNode && old.form == closedTable:
	case old.kind == tableNode && (form == implicitTable || old.form == form):
		return old
	case old.kind == arrayNode && old.form == headerTable && form == implicitTable:
		return old.items[len(old.items)-1]
	}
	b.fail(off, CodeDuplicate, "%s is given twice", key)
	return nil
}

// keyValue handles key = value and a.b = value within a table.
func (b *tomlBuilder) keyValue(t *node, e *unstable.Node, depth int) {
	for k := e.Key(); k.Next(); {
		key, off := string(k.Node().Data), int(k.Node().Raw.Offset)
		old := t.get(key)
		if !k.IsLast() {
			if t = b.descend(t, old, key, off, dottedTable); t == nil {
				return
			}
			continue
		}
		if old != nil {
			b.fail(off, CodeDuplicate, "%s is given twice", key)
			return
		}
		t.add(key, off, b.value(e.Value(), off, depth))
	}
}

// value makes a node of a value; off is where it stands unless the parser
// knows better.
func (b *tomlBuilder) value(v *unstable.Node, off, depth int) *node {
	if v.Raw.Length > 0 {
		off = int(v.Raw.Offset)
	}
	n := &node{off: off, form: closedTable}
	if depth > maxDepth {
		b.fail(off, CodeValue, "nested too deeply")
		return n
	}
	switch v.Kind {
	case unstable.String:
		n.kind, n.text = stringNode, string(v.Data)
	case unstable.Integer:
		n.kind, n.text = integerNode, string(v.Data)
	case unstable.Bool:
		n.kind, n.text = boolNode, string(v.Data)
	case unstable.Array:
		n.kind = arrayNode
		for it := v.Children(); it.Next(); {
			n.items = append(n.items, b.value(it.Node(), off, depth+1))
		}
	case unstable.InlineTable:
		n.kind, n.form = tableNode, dottedTable
		for it := v.Children(); it.Next(); {
			b.keyValue(n, it.Node(), depth+1)
		}
		n.close()
	}
	return n
}

// close makes an inline table and the dotted ones within complete.
func (n *node) close() {
	n.form = closedTable
	for _, f := range n.fields {
		if f.val.kind == tableNode && f.val.form == dottedTable {
			f.val.close()
		}
	}
}
