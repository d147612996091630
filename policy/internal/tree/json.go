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
		var se *json.SyntaxError
		if errors.As(err, &se) && se.Offset > 0 {
			off = int(se.Offset) - 1
		}
		b.fail(off, Syntax, "%s", strings.TrimPrefix(err.Error(), "json: "))
		return nil
	}
	root, _ := hujson.Parse(b.data) // which takes all that JSON is
	return b.jsonValue(&root, 0)
}

// jsonValue makes a node of a value.
func (b *builder) jsonValue(v *hujson.Value, depth int) *Node {
	n := &Node{Off: v.StartOffset}
	if depth > maxDepth {
		b.fail(n.Off, TooDeep, "nested too deeply")
		return n
	}
	switch t := v.Value.(type) {
	case hujson.Literal:
		switch text := t.String(); t.Kind() {
		case '"':
			n.Kind, n.Text = String, text
		case 't', 'f':
			n.Kind, n.Text = Bool, text
		case '0':
			if !strings.ContainsAny(text, ".eE") {
				n.Kind, n.Text = Integer, text
			}
		}
	case *hujson.Array:
		n.Kind = Array
		for i := range t.Elements {
			n.Items = append(n.Items, b.jsonValue(&t.Elements[i], depth+1))
		}
	case *hujson.Object:
		n.Kind = Table
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
