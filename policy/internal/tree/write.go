package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// TOML is the file for the tree of a table: lists have one element a line, and what a
// value has in From is a comment.
func (n *Node) TOML() string {
	var b strings.Builder
	n.tables(&b, "")
	return b.String()
}

// tables writes a table's keys, and then the tables in it.
func (n *Node) tables(b *strings.Builder, name string) {
	header := name
	for _, f := range n.Fields {
		if f.Val.Kind == Table {
			continue
		}
		if header != "" {
			if b.Len() > 0 {
				b.WriteString("\n")
			}
			fmt.Fprintf(b, "[%s]\n", header)
			header = ""
		}
		if f.Val.Kind != Array || len(f.Val.Items) == 0 {
			fmt.Fprintf(b, "%s = %s%s\n", keyTOML(f.Key), f.Val.Inline(), f.Val.comment())
			continue
		}
		fmt.Fprintf(b, "%s = [\n", keyTOML(f.Key))
		for _, item := range f.Val.Items {
			fmt.Fprintf(b, "  %s,%s\n", item.Inline(), item.comment())
		}
		b.WriteString("]\n")
	}
	for _, f := range n.Fields {
		if f.Val.Kind == Table {
			f.Val.tables(b, strings.TrimPrefix(name+"."+keyTOML(f.Key), "."))
		}
	}
}

// Inline is a value in TOML in one line.
func (n *Node) Inline() string { return n.inline(QuoteTOML, keyTOML, " = ") }

// inline is a value in one line.
func (n *Node) inline(quote, key func(string) string, equals string) string {
	var parts []string
	switch n.Kind {
	case String:
		return quote(n.Text)
	case Array:
		for _, item := range n.Items {
			parts = append(parts, item.inline(quote, key, equals))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case Table:
		for _, f := range n.Fields {
			parts = append(parts, key(f.Key)+equals+f.Val.inline(quote, key, equals))
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

// JSON is the file without what stands in From: JSON has no comments.
func (n *Node) JSON() string {
	var b bytes.Buffer
	_ = json.Indent(&b, []byte(n.inline(quoteJSON, quoteJSON, ":")), "", "  ") // no error: it is JSON
	return b.String() + "\n"
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
