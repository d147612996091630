package tree

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// writeTOML writes lists with one element a line, and what a value has in From as
// a comment.
func writeTOML(w io.Writer, n *Node) error {
	t := &tomlWriter{w: bufio.NewWriter(w)}
	t.tables(n, "")
	return t.w.Flush()
}

// tomlWriter writes TOML; its errors come with Flush.
type tomlWriter struct {
	w    *bufio.Writer
	some bool // something was written
}

// tables writes a table's keys, and then the tables in it.
func (t *tomlWriter) tables(n *Node, name string) {
	header := name
	for _, f := range n.Fields {
		if f.Val.Kind == Table {
			continue
		}
		if header != "" {
			if t.some {
				t.w.WriteString("\n")
			}
			fmt.Fprintf(t.w, "[%s]\n", header)
			header = ""
		}
		t.some = true
		t.key(keyTOML(f.Key), f.Val)
	}
	for _, f := range n.Fields {
		if f.Val.Kind == Table {
			t.tables(f.Val, strings.TrimPrefix(name+"."+keyTOML(f.Key), "."))
		}
	}
}

func (t *tomlWriter) key(key string, n *Node) {
	if n.Kind != Array || len(n.Items) == 0 {
		fmt.Fprintf(t.w, "%s = %s%s\n", key, n.Inline(), n.comment())
		return
	}
	fmt.Fprintf(t.w, "%s = [\n", key)
	for _, item := range n.Items {
		fmt.Fprintf(t.w, "  %s,%s\n", item.Inline(), item.comment())
	}
	t.w.WriteString("]\n")
}

// Inline is a value in TOML in one line.
func (n *Node) Inline() string {
	var parts []string
	switch n.Kind {
	case String:
		return QuoteTOML(n.Text)
	case Array:
		for _, item := range n.Items {
			parts = append(parts, item.Inline())
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Table:
		for _, f := range n.Fields {
			parts = append(parts, keyTOML(f.Key)+" = "+f.Val.Inline())
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return n.Text
}

// comment is where a value comes from, as a TOML comment.
func (n *Node) comment() string {
	if n.From == nil || n.From.String() == "" {
		return ""
	}
	return "  # " + strings.Map(func(r rune) rune {
		if IsControl(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, n.From.String())
}

// QuoteTOML writes a string as TOML's basic strings are
// (https://toml.io/en/v1.0.0#string), so that no character steers a terminal.
func QuoteTOML(s string) string {
	return quote(s, func(r rune) string { return fmt.Sprintf(`\U%08X`, r) })
}

// quote writes a string with quotation marks; escape writes the characters that a
// file may not have.
func quote(s string, escape func(rune) string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case IsControl(r) || isHidden(r):
			b.WriteString(escape(r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// keyTOML writes a key, bare where that is possible.
func keyTOML(s string) string {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return QuoteTOML(s)
		}
	}
	return s
}

// writeJSON writes a value without what stands in From: JSON has no comments.
func writeJSON(w io.Writer, n *Node) error {
	var whole, out bytes.Buffer
	jsonValue(&whole, n)
	if err := json.Indent(&out, whole.Bytes(), "", "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, out.String())
	return err
}

func jsonValue(b *bytes.Buffer, n *Node) {
	comma := func(i int) {
		if i > 0 {
			b.WriteByte(',')
		}
	}
	switch n.Kind {
	case String:
		b.WriteString(quoteJSON(n.Text))
	case Array:
		b.WriteByte('[')
		for i, item := range n.Items {
			comma(i)
			jsonValue(b, item)
		}
		b.WriteByte(']')
	case Table:
		b.WriteByte('{')
		for i, f := range n.Fields {
			comma(i)
			b.WriteString(quoteJSON(f.Key) + ":")
			jsonValue(b, f.Val)
		}
		b.WriteByte('}')
	default:
		b.WriteString(n.Text)
	}
}

// quoteJSON writes a string as RFC 8259 has it.
func quoteJSON(s string) string {
	return quote(s, func(r rune) (out string) {
		for _, u := range utf16.AppendRune(nil, r) {
			out += fmt.Sprintf(`\u%04x`, u)
		}
		return out
	})
}
