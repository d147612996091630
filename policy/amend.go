package policy

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/tree"
)

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
