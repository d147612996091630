package tree

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tailscale/hujson"
)

// json returns the tree of a document, or nil if it is not JSON. encoding/json finds what
// is wrong. But its values have no positions, and of two equal keys it silently takes the
// last one. So the tree is made from hujson's values.
func (b *builder) json() *Node {
	var raw json.RawMessage
	if err := json.Unmarshal(b.data, &raw); err != nil {
		off := len(b.data)
		if se, ok := errors.AsType[*json.SyntaxError](err); ok && se.Offset > 0 {
			off = int(se.Offset) - 1
		}
		b.fail(off, Syntax, "%s", strings.TrimPrefix(err.Error(), "json: "))
		return nil
	}
	root, _ := hujson.Parse(b.data) // which accepts all JSON
	return b.jsonValue(&root, 0)
}

// kinds are the kinds of hujson's values. null is Other.
var kinds = [256]Kind{'"': String, '0': Integer, 't': Bool, 'f': Bool, '[': Array, '{': Table}

// jsonValue makes a node of a value.
func (b *builder) jsonValue(v *hujson.Value, depth int) *Node {
	n := &Node{Off: v.StartOffset, Kind: kinds[v.Value.Kind()]}
	if depth > maxDepth {
		b.fail(n.Off, TooDeep, "nested too deeply")
		return n
	}
	switch t := v.Value.(type) {
	case hujson.Literal:
		n.Text = t.String()
		if n.Kind == Integer && strings.ContainsAny(n.Text, ".eE") {
			n.Kind = Other
		}
	case *hujson.Array:
		for i := range t.Elements {
			n.Items = append(n.Items, b.jsonValue(&t.Elements[i], depth+1))
		}
	case *hujson.Object:
		for i := range t.Members {
			m := &t.Members[i]
			key := m.Name.Value.(hujson.Literal).String()
			val := b.jsonValue(&m.Value, depth+1)
			if n.Get(key) != nil {
				b.fail(m.Name.StartOffset, Duplicate, "key %s is already defined", key)
			} else {
				n.Add(key, m.Name.StartOffset, val)
			}
		}
	}
	return n
}
