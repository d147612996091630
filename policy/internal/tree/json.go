package tree

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/tailscale/hujson"
)

// json gives the tree of a document, nil where it is none. encoding/json says what is
// wrong; its values have no places, and of two equal keys it takes the last one without
// a word, so the tree is made of hujson's.
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
	root, _ := hujson.Parse(b.data) // which takes all that JSON is
	return b.jsonValue(&root, 0)
}

// kinds are those of values as hujson has them; null is none of ours.
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
		if n.Text = t.String(); n.Kind == Integer && strings.ContainsAny(n.Text, ".eE") {
			n.Kind = Other
		}
	case *hujson.Array:
		for i := range t.Elements {
			n.Items = append(n.Items, b.jsonValue(&t.Elements[i], depth+1))
		}
	case *hujson.Object:
		for i := range t.Members {
			m := &t.Members[i]
			key, val := m.Name.Value.(hujson.Literal).String(), b.jsonValue(&m.Value, depth+1)
			if n.Get(key) != nil {
				b.fail(m.Name.StartOffset, Duplicate, "key %s is already defined", key)
			} else {
				n.Add(key, m.Name.StartOffset, val)
			}
		}
	}
	return n
}
