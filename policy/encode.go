package policy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/zsbx/zsbx/internal/object"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/tree"
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
	return e.b.String(), e.errs.Err()
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
			e.says(v.Origin, v.Value, k.wrong(v))
		}
		if list == nil {
			continue
		}
		switch k.kind {
		case textTable:
			for _, v := range list {
				e.says(v.Origin, v.Name, syntax.CheckEnvName(v.Name))
				e.line(whole, v.Name, k.inline(v), v.Origin)
			}
		case listTable:
			for _, l := range lastOfEach(list) {
				e.says(l.Origin, l.Name, syntax.CheckListName(l.Name))
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
	for _, os := range syntax.Systems {
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
	if strings.Trim(name, syntax.WordLetters+"ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
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
	case k.kind == hostList && v.Name != "":
		return "{ host = " + text + ", " + strings.ReplaceAll(v.Name, " ", " = true, ") + " = true }"
	case v.Create:
		return "{ path = " + text + ", create = true }"
	case v.Optional:
		return "{ path = " + text + ", optional = true }"
	}
	return text
}
