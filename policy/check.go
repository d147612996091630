package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tree"
)

// checker makes a Policy of a tree. It goes on after an error, so that all
// of them are seen at once.
type checker struct {
	source string
	places *tree.Places // nil for a tree that is to be written, whose values have their origins
	errs   Errors
	rules  int

	names map[string][]string // what known found: a file may have many unknown keys
}

func (c *checker) fail(o Origin, code Code, format string, args ...any) {
	c.errs = append(c.errs, &Error{Origin: o, Code: code, Msg: fmt.Sprintf(format, args...)})
}

// at is where a value stands.
func (c *checker) at(n *tree.Node) Origin { return c.origin(n, n.Off) }

// keyAt is where a field's key stands.
func (c *checker) keyAt(f *tree.Field) Origin { return c.origin(f.Val, f.Off) }

func (c *checker) origin(n *tree.Node, off int) Origin {
	if o, ok := n.From.(Origin); ok {
		return o
	}
	if c.places == nil {
		return Origin{}
	}
	line, column := c.places.At(off)
	return Origin{Source: c.source, Line: line, Column: column}
}

// count adds a rule and complains about the first one too many.
func (c *checker) count(n *tree.Node, off int) {
	if c.rules++; c.rules == MaxRules+1 && c.places != nil {
		c.fail(c.origin(n, off), CodeLimit, "more than %d rules", MaxRules)
	}
}

// is checks a value's type.
func (c *checker) is(n *tree.Node, kind tree.Kind, what string) bool {
	if n.Kind == kind {
		return true
	}
	c.fail(c.at(n), CodeType, "%s must be %s, not %s", what, kind, n.Kind)
	return false
}

// unknown reports a key that the table does not have.
func (c *checker) unknown(f *tree.Field, table string, known ...string) {
	where := "at the top level"
	if table != "" {
		where = "in [" + table + "]"
	}
	c.fail(c.keyAt(f), CodeUnknownKey, "unknown key %s %s: there are %s%s", strconv.Quote(f.Key), where, strings.Join(known, ", "), didYouMean(f.Key, known))
}

// known are the names in a table: of keys, and of tables.
func (c *checker) known(table string) []string {
	if all := c.names[table]; all != nil {
		return all
	}
	var all []string
	for i := range keys {
		k := &keys[i]
		rest, ok := strings.CutPrefix("."+k.full(), strings.TrimSuffix("."+table, ".")+".")
		name, _, _ := strings.Cut(rest, ".")
		if ok && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if c.names == nil {
		c.names = map[string][]string{}
	}
	c.names[table] = slices.Clip(all)
	return c.names[table]
}

// find is the key or the table that a field of a table is, if it is known.
func (c *checker) find(table string, f *tree.Field) (k *key, inner string) {
	for i := range keys {
		if k := &keys[i]; k.table == table && k.name == f.Key {
			return k, ""
		}
	}
	inner = strings.TrimPrefix(table+"."+f.Key, ".")
	if strings.Contains(f.Key, ".") || !slices.ContainsFunc(keys[:], func(k key) bool { return k.table == inner }) {
		inner = ""
	}
	return nil, inner
}

// policy checks the whole file.
func (c *checker) policy(n *tree.Node) *Policy {
	if n.Get("paths") != nil && n.Get("layers") != nil { // zsbx profile --format json, which has a policy in it
		n = cmp.Or(n.Get("policy"), n)
	}
	p := &Policy{}
	c.table(n, p, "", "")
	return p
}

// table checks a table. The prefix is "linux." or "macos." in the overrides for one
// system, which have the same tables.
func (c *checker) table(n *tree.Node, p *Policy, prefix, table string) {
	if !c.is(n, tree.Table, cmp.Or(strings.TrimSuffix(prefix+table, "."), "a policy")) {
		return
	}
	for i := range n.Fields {
		f := &n.Fields[i]
		k, inner := c.find(table, f)
		switch {
		case k != nil:
			c.key(k, f.Val, p, prefix+k.full())
		case inner != "":
			c.table(f.Val, p, prefix, inner)
		case prefix+table == "" && f.Key == "linux":
			p.Linux = &Policy{}
			c.table(f.Val, p.Linux, "linux.", "")
		case prefix+table == "" && f.Key == "macos":
			p.MacOS = &Policy{}
			c.table(f.Val, p.MacOS, "macos.", "")
		case prefix+table == "":
			c.unknown(f, "", append(c.known(""), "linux", "macos")...)
		default:
			c.unknown(f, strings.TrimSuffix(prefix+table, "."), c.known(table)...)
		}
	}
}

// key checks the value of a key.
func (c *checker) key(k *key, n *tree.Node, p *Policy, what string) {
	var list []value
	switch k.kind {
	case pathList, socketList, textList, portList:
		if !c.is(n, tree.Array, what) {
			return
		}
		list = c.list(k, n.Items, what)
	case textTable, listTable:
		if !c.is(n, tree.Table, what) {
			return
		}
		for i := range n.Fields {
			list = append(list, c.named(k, &n.Fields[i], what)...)
		}
	default:
		if !c.scalar(k, n, what) {
			return
		}
		list = []value{{text: n.Text, from: c.at(n)}}
	}
	if err := k.put(p, list); err != nil {
		c.fail(c.at(n), CodeValue, "%v", err)
	}
}
