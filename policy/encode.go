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
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/policy/internal/tree"
)

// EncodeTOML writes the policy as a file that Decode reads with the same meaning, in a
// fixed order, each rule with its origin as a comment. It fails for what no policy file
// can express, such as a path that is not UTF-8. What only presets have is left out.
func (p *Policy) EncodeTOML(w io.Writer) error {
	text, err := p.toml()
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

// EncodeJSON writes the policy as a file of one line that Decode reads with the same
// meaning. The origins are lost, because JSON has no comments. It fails as EncodeTOML
// does.
func (p *Policy) EncodeJSON(w io.Writer) error {
	text, err := p.toml()
	var all map[string]any
	err = cmp.Or(err, toml.Unmarshal([]byte(text), &all))
	if err != nil {
		return err
	}
	_, err = w.Write(object.Of(all))
	return err
}

// toml returns the text of a file. The error says what cannot be written into one: what
// the decoder refuses, and rules that belong to no key.
func (p *Policy) toml() (string, error) {
	e := &encoder{}
	e.write(p, "")
	for _, bad := range e.errs {
		bad.Err = errors.New(bad.Msg)
		bad.Code = CodeValue
		bad.Msg = "cannot be written into a policy file"
	}
	return e.b.String(), e.errs.err()
}

// encoder writes a file, and checks what it writes.
type encoder struct {
	checker
	b     strings.Builder
	table string // of the last key
}

// write writes a policy, and then its overrides for single systems, with the prefix
// "linux." or "macos.".
func (e *encoder) write(p *Policy, prefix string) {
	for i := range keys {
		k := &keys[i]
		whole := prefix + keys[i].name
		table := ""
		name := whole
		if dot := strings.LastIndexByte(whole, '.'); dot >= 0 {
			table = whole[:dot]
			name = whole[dot+1:]
		}
		list := k.values(p)
		for _, v := range list {
			e.says(v.Origin, v.Value, k.check)
		}
		if list == nil {
			continue
		}
		switch k.kind {
		case textTable:
			for _, v := range list {
				e.says(v.Origin, v.Name, checkEnvName)
				e.line(whole, v.Name, k.inline(v), v.Origin)
			}
		case listTable:
			for _, l := range lastOfEach(list) {
				e.says(l.Origin, l.Name, checkListName)
				ofOther := func(v Named) bool { return v.Name != l.Name }
				e.list(k, whole, l.Name, slices.DeleteFunc(slices.Clone(list), ofOther))
			}
		default:
			if k.kind.single() {
				e.line(table, name, k.inline(list[0]), list[0].Origin)
			} else {
				e.list(k, table, name, list)
			}
		}
	}
	for _, r := range p.FS.Rules {
		if r.Access&Read == 0 || r.Access&^(Read|Write|Exec) != 0 {
			e.fail(r.Origin, CodeValue, "no key means %s", r.Access)
		}
	}
	for _, os := range systems {
		if part := *p.part(os); part != nil {
			e.write(part, os+".")
		}
	}
}

// list writes a list, one element per line.
func (e *encoder) list(k *key, table, name string, list []Named) {
	if len(list) == 0 {
		e.line(table, name, "[]", Origin{})
		return
	}
	e.line(table, name, "[", Origin{})
	for _, v := range list {
		fmt.Fprintf(&e.b, "  %s,%s\n", k.inline(v), comment(v.Origin))
	}
	e.b.WriteString("]\n")
}

// line writes a key with its value, or the beginning of the value, in a table.
func (e *encoder) line(table, name, value string, from Origin) {
	if table != e.table {
		if e.b.Len() > 0 {
			e.b.WriteString("\n")
		}
		fmt.Fprintf(&e.b, "[%s]\n", table)
		e.table = table
	}
	if strings.Trim(name, wordLetters+"ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		name = tree.QuoteTOML(name)
	}
	fmt.Fprintf(&e.b, "%s = %s%s\n", name, value, comment(from))
}

// comment returns a comment that says where a value comes from.
func comment(from Origin) string {
	if from == (Origin{}) {
		return ""
	}
	return "  # " + strings.Map(func(r rune) rune {
		if object.Hidden(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, from.String())
}

// inline returns a value on one line.
func (k *key) inline(v Named) string {
	text := v.Value
	if k.leaf() == tree.String && (!k.kind.limit() || strings.Trim(text, "0123456789") != "") {
		text = tree.QuoteTOML(text)
	}
	switch {
	case v.Create:
		return "{ path = " + text + ", create = true }"
	case v.Optional:
		return "{ path = " + text + ", optional = true }"
	}
	return text
}

// ErrAmend says that a policy file is written in a way that Amend can't add to.
var ErrAmend = errors.New("it is written in a way that a program can't add to")

// Amend adds presets, rules, ports and sockets to the text of a policy file in TOML, and
// leaves the rest as it is, comments included. The result means the same as both policies
// merged; if that is not possible, the error is ErrAmend. If Decode can't read the file,
// the error is Decode's, with the name.
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
		if k.kind > portList || k.wider == nil || k.name == "env.allow" {
			continue
		}
		have := k.values(old)
		list := slices.DeleteFunc(slices.Clone(k.values(add)), func(v Named) bool {
			return slices.ContainsFunc(have, func(o Named) bool { o.Origin = v.Origin; return o == v })
		})
		if len(list) > 0 {
			out = k.insert(out, list)
		}
	}
	if p, err := Decode(name, []byte(out)); err != nil || p.Hash() != Merge(old, add).Hash() {
		return nil, ErrAmend
	}
	return []byte(out), nil
}

// insert puts elements into a key's list in the text of a file. It adds them before the
// list's first element, or adds the list to its table, or to a new table.
func (k *key) insert(text string, list []Named) string {
	var all []string
	for _, v := range list {
		all = append(all, k.inline(v))
	}
	name := k.name
	header := ""
	root, _ := tree.Read(false, []byte(text))
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		root = cmp.Or(root.Get(name[:dot]), &tree.Node{})
		header = name[:dot]
		name = name[dot+1:]
	}
	lines := "  " + strings.Join(all, ",\n  ") + ",\n"
	whole := name + " = [\n" + lines + "]\n"
	if len(all) == 1 {
		whole = name + " = [" + all[0] + "]\n"
	}
	if old := root.Get(name); old != nil {
		key, after, _ := strings.Cut(text[old.Off:], "[")
		before := text[:old.Off] + key + "["
		rest := strings.TrimLeft(after, " \t\r")
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

// Hash returns the SHA-256, in hexadecimal, of what the policy means. Two policies that
// differ only in origins, in the order of rules, in repetitions or in their file's layout
// have the same hash. Policies that may mean different things have different hashes.
func (p *Policy) Hash() string {
	sum := sha256.Sum256([]byte("zsbx policy 2\n" + strings.Join(p.statements(""), "\n")))
	return hex.EncodeToString(sum[:])
}

// statements returns the sorted statements of a policy. Every string in them is quoted, so
// that no value can look like another statement.
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
