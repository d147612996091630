package policy

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tree"
)

// ErrAmend says that a policy file is written in a way that Amend can't add to.
var ErrAmend = errors.New("it is written in a way that nothing can be added to by a program")

// Amend adds presets, rules, ports and sockets to the text of a policy file in TOML,
// and leaves all else as it is, comments included. What it gives means the same as
// both policies merged; where that can't be had, it is ErrAmend. The error may be
// what DecodeTOML says of the file. Name stands in it.
func Amend(name string, text []byte, add *Policy) ([]byte, error) {
	old, err := DecodeTOML(name, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	if len(bytes.TrimSpace(text)) == 0 {
		lines = nil
	}
	for i := range keys {
		k := &keys[i]
		if k.kind > portList || k.wider == nil || k.replaces || k.table == "env" {
			continue
		}
		have := k.values(old)
		list := slices.DeleteFunc(k.values(add), func(v value) bool {
			return slices.ContainsFunc(have, func(o value) bool { o.from = v.from; return o == v })
		})
		if len(list) > 0 {
			lines = amendList(lines, k.table, k.name, k.node(list).Items)
		}
	}
	out := []byte(strings.Join(lines, "\n") + "\n")
	if p, err := DecodeTOML(name, bytes.NewReader(out)); err != nil || p.Hash() != Merge(old, add).Hash() {
		return nil, ErrAmend
	}
	return out, nil
}

// amendList adds elements to a list in a table: before its first one, in the table, or
// in a new one.
func amendList(lines []string, table, key string, list []*tree.Node) []string {
	header := func(l string) bool { return strings.HasPrefix(strings.TrimSpace(l), "[") }
	isTable := func(l string) bool {
		l, _, _ = strings.Cut(l, "#")
		return header(l) && strings.Trim(l, " \t[]") == table && strings.Count(l, "[") == 1
	}
	var all []string
	for _, e := range list {
		all = append(all, "  "+e.Inline()+",")
	}
	whole := slices.Concat([]string{key + " = ["}, all, []string{"]"})
	if len(list) == 1 {
		whole = []string{key + " = [" + list[0].Inline() + "]"}
	}
	begin := 0
	if table != "" {
		begin = slices.IndexFunc(lines, isTable) + 1
		if begin == 0 {
			if len(lines) > 0 {
				lines = append(lines, "")
			}
			return slices.Concat(lines, []string{"[" + table + "]"}, whole)
		}
	}
	for i := begin; i < len(lines) && !(header(lines[i]) && !strings.HasSuffix(strings.TrimSpace(lines[i]), ",")); i++ {
		at := listAt(lines[i], key)
		if at < 0 {
			continue
		}
		rest := strings.TrimSpace(lines[i][at:])
		if rest == "" || rest[0] == '#' {
			return slices.Insert(lines, i+1, all...)
		}
		one := strings.TrimSpace(strings.Join(all, ""))
		if strings.HasPrefix(rest, "]") {
			one = strings.TrimSuffix(one, ",")
		} else {
			one += " "
		}
		lines[i] = lines[i][:at] + strings.ReplaceAll(one, ",  ", ", ") + strings.TrimLeft(lines[i][at:], " \t")
		return lines
	}
	if table == "" { // what stands before the first table
		for begin < len(lines) && (strings.HasPrefix(strings.TrimSpace(lines[begin]), "#") || strings.TrimSpace(lines[begin]) == "") {
			begin++
		}
		if begin < len(lines) && header(lines[begin]) {
			whole = append(whole, "")
		}
	}
	return slices.Insert(lines, begin, whole...)
}

// listAt is where the elements of a key's list begin in a line, or -1.
func listAt(line, key string) int {
	rest, ok := strings.CutPrefix(strings.TrimLeft(line, " \t"), key)
	for _, next := range []string{"=", "["} {
		if ok {
			rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t"), next)
		}
	}
	if !ok {
		return -1
	}
	return len(line) - len(rest)
}
