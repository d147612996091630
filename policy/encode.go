package policy

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tree"
)

// EncodeTOML writes the policy as a file that Decode reads as the same
// meaning, in a fixed order, each rule with its origin as a comment. It fails
// for what no policy file can say, such as a path that is not UTF-8. What only
// presets say is left out.
func (p *Policy) EncodeTOML(w io.Writer) error { return p.encode(w, (*tree.Node).TOML) }

// EncodeJSON writes the policy as a file that Decode reads as the same
// meaning. JSON has no comments: the origins are lost. It fails as EncodeTOML
// does.
func (p *Policy) EncodeJSON(w io.Writer) error { return p.encode(w, (*tree.Node).JSON) }

// QuoteTOML writes a string as TOML's basic strings are
// (https://toml.io/en/v1.0.0#string), so that no character steers a terminal.
func QuoteTOML(s string) string { return tree.QuoteTOML(s) }

func (p *Policy) encode(w io.Writer, text func(*tree.Node) string) error {
	root := p.tree()
	err := p.encodable(root)
	if err == nil {
		_, err = io.WriteString(w, text(root))
	}
	return err
}

// encodable says what of a policy cannot be written into a file: what the
// decoder refuses, and rules that belong to no key.
func (p *Policy) encodable(root *tree.Node) error {
	c := &checker{}
	c.policy(root)
	for _, part := range p.parts() {
		for _, r := range part.FS.Rules {
			if r.Access&Read == 0 || r.Access&^(Read|Write|Exec) != 0 {
				c.fail(r.Origin, CodeValue, "no key means %s", r.Access)
			}
		}
	}
	for _, e := range c.errs {
		e.Code, e.Msg, e.Err = CodeValue, "cannot be written into a policy file", errors.New(e.Msg)
	}
	return c.errs.err()
}

// tree is the policy as a file has it.
func (p *Policy) tree() *tree.Node {
	root := &tree.Node{Kind: tree.Table}
	for i := range keys {
		k := &keys[i]
		list := k.values(p)
		if list == nil {
			continue
		}
		at, names := root, strings.Split(k.name, ".")
		for _, name := range names[:len(names)-1] {
			at = at.Within(name, tree.Table)
		}
		at.Add(names[len(names)-1], 0, k.node(list))
	}
	for _, os := range systems {
		if part := *p.part(os); part != nil {
			root.Add(os, 0, part.tree())
		}
	}
	return root
}

// node is the value of a key in a file.
func (k *key) node(list []Named) *tree.Node {
	n := &tree.Node{Kind: tree.Array}
	if k.kind == textTable || k.kind == listTable {
		n.Kind = tree.Table
	}
	for _, v := range list {
		leaf := k.leaf(v)
		switch {
		case k.kind >= scalar:
			return leaf
		case k.kind == textTable:
			n.Add(v.Name, 0, leaf)
		case k.kind == listTable:
			at := n.Within(v.Name, tree.Array)
			at.Items = append(at.Items, leaf)
		default:
			n.Items = append(n.Items, leaf)
		}
	}
	return n
}

// leaf is one value in a file.
func (k *key) leaf(v Named) *tree.Node {
	n := &tree.Node{Kind: k.leafKind(v.Value), Text: v.Value, From: v.Origin}
	if !v.Create && !v.Optional {
		return n
	}
	word := "optional"
	if v.Create {
		word = "create"
	}
	entry := &tree.Node{Kind: tree.Table, From: v.Origin}
	entry.Add("path", 0, n)
	entry.Add(word, 0, &tree.Node{Kind: tree.Bool, Text: "true"})
	return entry
}

// leafKind is what a value is in a file.
func (k *key) leafKind(text string) tree.Kind {
	switch {
	case k.kind == boolean:
		return tree.Bool
	case k.kind == portList, k.kind == number, k.kind == limit && strings.Trim(text, "0123456789") == "":
		return tree.Integer
	}
	return tree.String
}

// ErrAmend says that a policy file is written in a way that Amend can't add to.
var ErrAmend = errors.New("it is written in a way that nothing can be added to by a program")

// Amend adds presets, rules, ports and sockets to the text of a policy file in TOML,
// and leaves all else as it is, comments included. What it gives means the same as
// both policies merged; where that can't be had, it is ErrAmend. The error may be
// what Decode says of the file. Name stands in it.
func Amend(name string, text []byte, add *Policy) ([]byte, error) {
	old, err := Decode(name, text)
	if err != nil {
		return nil, err
	}
	out := strings.TrimRight(string(text), "\n") + "\n"
	if strings.TrimSpace(out) == "" {
		out = ""
	}
	for i := range keys {
		k := &keys[i]
		if k.kind > portList || k.wider == nil || k.replaces || k.name == "env.allow" {
			continue
		}
		have := k.values(old)
		list := slices.DeleteFunc(slices.Clone(k.values(add)), func(v Named) bool {
			return slices.ContainsFunc(have, func(o Named) bool { o.Origin = v.Origin; return o == v })
		})
		if len(list) > 0 {
			out = k.insert(out, k.node(list).Items)
		}
	}
	if p, err := Decode(name, []byte(out)); err != nil || p.Hash() != Merge(old, add).Hash() {
		return nil, ErrAmend
	}
	return []byte(out), nil
}

// insert puts elements into a key's list in the text of a file: before its first one,
// into its table, or into a new table.
func (k *key) insert(text string, list []*tree.Node) string {
	var all []string
	for _, e := range list {
		all = append(all, e.Inline())
	}
	name, header := k.name, ""
	root, _ := tree.Read(false, []byte(text))
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		root, header, name = cmp.Or(root.Get(name[:dot]), &tree.Node{}), name[:dot], name[dot+1:]
	}
	lines := "  " + strings.Join(all, ",\n  ") + ",\n"
	whole := name + " = [\n" + lines + "]\n"
	if len(all) == 1 {
		whole = name + " = [" + all[0] + "]\n"
	}
	if old := root.Get(name); old != nil {
		key, after, _ := strings.Cut(text[old.Off:], "[")
		before, rest := text[:old.Off]+key+"[", strings.TrimLeft(after, " \t\r")
		switch {
		case strings.HasPrefix(rest, "]"):
			return before + strings.Join(all, ", ") + rest
		case strings.HasPrefix(rest, "#"), strings.HasPrefix(rest, "\n"):
			comment, rest, _ := strings.Cut(after, "\n")
			return before + comment + "\n" + lines + rest
		}
		return before + strings.Join(all, ", ") + ", " + rest
	}
	at := strings.Index("\n"+text, "\n["+header+"]")
	switch {
	case header == "" && text != "": // before all tables
		return whole + "\n" + text
	case header != "" && at >= 0:
		at += strings.IndexByte(text[at:], '\n') + 1
		return text[:at] + whole + text[at:]
	case header != "":
		whole = "[" + header + "]\n" + whole
	}
	if text != "" {
		text += "\n"
	}
	return text + whole
}

// Hash is the SHA-256, in hexadecimal, of what the policy means. Two policies
// that differ only in origins, in the order of rules, in repetitions or in
// their file's layout have the same one; policies that may mean different
// things have different ones.
func (p *Policy) Hash() string {
	sum := sha256.Sum256([]byte("zsbx policy 2\n" + strings.Join(p.statements(""), "\n")))
	return hex.EncodeToString(sum[:])
}

// statements are the sorted sentences a policy consists of. Every string in
// them is quoted, so that no value can look like a sentence of its own.
func (p *Policy) statements(prefix string) []string {
	var all []string
	for i := range keys {
		k := &keys[i]
		list := k.values(p)
		if list == nil {
			continue
		}
		all = append(all, prefix+k.name)
		for _, v := range list {
			all = append(all, fmt.Sprintf("%s%s %t %t %q %q", prefix, k.name, v.Optional, v.Create, v.Name, v.Value))
		}
	}
	if p.Guard.Off {
		all = append(all, prefix+"guard off")
	}
	for _, r := range p.FS.Rules {
		if r.Data { // no key has it
			all = append(all, fmt.Sprintf("%sfs.rw_noexec data %q", prefix, r.Path))
		}
	}
	for _, os := range systems {
		if part := *p.part(os); part != nil {
			all = append(all, part.statements(prefix+os+" ")...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
