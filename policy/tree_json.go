package policy

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
	loc  *locator
	dec  *json.Decoder
	errs Errors
}

// parseJSON gives the tree of a document, or what is wrong with it.
func parseJSON(loc *locator) (*node, Errors) {
	b := &jsonBuilder{loc: loc}
	// The whole document is checked first, what follows it included; then
	// the walk meets no syntax error.
	var raw json.RawMessage
	if err := json.Unmarshal(loc.data, &raw); err != nil {
		off := len(loc.data)
		var se *json.SyntaxError
		if errors.As(err, &se) && se.Offset > 0 {
			off = int(se.Offset) - 1
		}
		b.fail(off, CodeSyntax, "%s", strings.TrimPrefix(err.Error(), "json: "))
		return nil, b.errs
	}
	b.dec = json.NewDecoder(bytes.NewReader(loc.data))
	b.dec.UseNumber()
	return b.value(0), b.errs
}

func (b *jsonBuilder) fail(off int, code Code, format string, args ...any) {
	b.errs = append(b.errs, &Error{Origin: b.loc.at(off), Code: code, Msg: fmt.Sprintf(format, args...)})
}

// next reads a token and tells where it starts.
func (b *jsonBuilder) next() (tok json.Token, off int) {
	off = int(b.dec.InputOffset())
	for off < len(b.loc.data) && strings.IndexByte(" \t\r\n,:", b.loc.data[off]) >= 0 {
		off++
	}
	tok, err := b.dec.Token()
	if err != nil {
		// Only if the check of the whole document and the decoder disagree.
		b.fail(off, CodeSyntax, "%s", err.Error())
		return nil, off
	}
	return tok, off
}

// value reads one value.
func (b *jsonBuilder) value(depth int) *node {
	tok, off := b.next()
	n := &node{off: off}
	switch t := tok.(type) {
	case string:
		n.kind, n.text = stringNode, t
	case bool:
		n.kind, n.text = boolNode, fmt.Sprint(t)
	case json.Number:
		if !strings.ContainsAny(t.String(), ".eE") {
			n.kind, n.text = integerNode, t.String()
		}
	case json.Delim:
		if depth > maxDepth {
			b.fail(off, CodeValue, "nested too deeply")
			b.skip()
			return n
		}
		if t == '[' {
			n.kind = arrayNode
			for b.dec.More() {
				n.items = append(n.items, b.value(depth+1))
			}
		} else {
			n.kind = tableNode
			b.members(n, depth)
		}
		b.next() // the closing bracket
	}
	return n
}

// members reads the keys of an object.
func (b *jsonBuilder) members(n *node, depth int) {
	for b.dec.More() {
		tok, off := b.next()
		key, ok := tok.(string)
		if !ok {
			return
		}
		val := b.value(depth + 1)
		if n.get(key) != nil {
			b.fail(off, CodeDuplicate, "%s is given twice", key)
			continue
		}
		n.add(key, off, val)
	}
}

// skip reads to the end of the array or object that was just opened.
func (b *jsonBuilder) skip() {
	for open := 1; open > 0; {
		tok, _ := b.next()
		switch tok {
		case nil:
			if len(b.errs) > 0 && b.errs[len(b.errs)-1].Code == CodeSyntax {
				return
			}
		case json.Delim('['), json.Delim('{'):
			open++
		case json.Delim(']'), json.Delim('}'):
			open--
		}
	}
}
