package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// jsonBuilder makes a tree of a JSON document. encoding/json would take the
// last of two equal keys without a word and has no positions, so the tokens
// are walked.
type jsonBuilder struct {
	*builder
	dec *json.Decoder
}

// json gives the tree of a document, nil where it is none.
func (doc *builder) json() *Node {
	b := &jsonBuilder{builder: doc}
	// The whole document is checked first, what follows it included; then
	// the walk meets no syntax error.
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
	b.dec = json.NewDecoder(bytes.NewReader(b.data))
	b.dec.UseNumber()
	return b.value(0)
}

// next reads a token and tells where it starts.
func (b *jsonBuilder) next() (tok json.Token, off int) {
	off = int(b.dec.InputOffset())
	for off < len(b.data) && strings.IndexByte(" \t\r\n,:", b.data[off]) >= 0 {
		off++
	}
	tok, _ = b.dec.Token() // the check of the whole document has found what is wrong
	return tok, off
}

// value reads one value.
func (b *jsonBuilder) value(depth int) *Node {
	tok, off := b.next()
	n := &Node{Off: off}
	switch t := tok.(type) {
	case string:
		n.Kind, n.Text = String, t
	case bool:
		n.Kind, n.Text = Bool, fmt.Sprint(t)
	case json.Number:
		if !strings.ContainsAny(t.String(), ".eE") {
			n.Kind, n.Text = Integer, t.String()
		}
	case json.Delim:
		if depth == maxDepth+1 { // what is below is read like the rest: json bounds it, too
			b.fail(off, TooDeep, "nested too deeply")
		}
		if t == '[' {
			n.Kind = Array
			for b.dec.More() {
				n.Items = append(n.Items, b.value(depth+1))
			}
		} else {
			n.Kind = Table
			b.members(n, depth)
		}
		b.next() // the closing bracket
	}
	return n
}

// members reads the keys of an object.
func (b *jsonBuilder) members(n *Node, depth int) {
	for b.dec.More() {
		tok, off := b.next()
		key, val := fmt.Sprint(tok), b.value(depth+1)
		if n.Get(key) != nil {
			b.twice(off, key)
		} else {
			n.Add(key, off, val)
		}
	}
}
