package policy

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/nearest"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/internal/tree"
)

const (
	// MaxFileSize is the most that a policy file may have, in bytes: room
	// for MaxRules rules of a hundred characters each.
	MaxFileSize = 1 << 20
	// MaxRules is how many rules flags and files together may have.
	MaxRules = 10_000
)

// Decode reads a policy: JSON if its name ends in ".json", otherwise TOML, with the same
// keys, the same meaning and the same errors. The name is used in origins. All errors are
// found at once: the error is an Errors, and each has line and column. The policy is nil
// if and only if there is an error.
//
// Decoding looks only at the text. Whether the paths exist and where they lead is found out when a
// command starts.
func Decode(name string, data []byte) (*Policy, error) {
	c := &checker{source: name, data: data, places: tree.NewPositions(data)}
	if len(data) > MaxFileSize {
		msg := fmt.Sprintf("larger than %d bytes", MaxFileSize)
		return nil, Errors{{Origin: Origin{Source: name}, Code: CodeLimit, Msg: msg}}
	}
	root, mistakes := tree.Read(strings.HasSuffix(name, ".json"), data)
	for _, m := range mistakes {
		c.fail(c.at(m.Off), Code(m.Kind), "%s", m.Msg)
	}
	var p *Policy
	if root != nil {
		p = c.policy(root)
	}
	if err := c.errs.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// DecodeFile reads a policy file. It reads only a regular file of at most MaxFileSize
// bytes, so that it neither blocks on a FIFO nor reads a device.
func DecodeFile(path string) (*Policy, error) {
	data, err := files.Read(path, MaxFileSize)
	if err != nil {
		origin := Origin{Source: path}
		return nil, Errors{{Origin: origin, Code: CodeFile, Msg: "reading the policy", Err: files.Plain(err)}}
	}
	return Decode(path, data)
}

// checker makes a Policy from a tree. It goes on after an error, so that all of them are
// found.
type checker struct {
	source string
	data   []byte
	places *tree.Positions
	errs   Errors
}

func (c *checker) fail(o Origin, code Code, format string, args ...any) {
	c.errs = append(c.errs, &Error{Origin: o, Code: code, Msg: fmt.Sprintf(format, args...)})
}

// at returns the place of a byte in the file.
func (c *checker) at(off int) Origin {
	line, column := c.places.At(off)
	return Origin{Source: c.source, Line: line, Column: column}
}

func (c *checker) is(n *tree.Node, kind tree.Kind, what string) bool {
	if n.Kind == kind {
		return true
	}
	c.fail(c.at(n.Off), CodeType, "%s must be %s, not %s", what, kind, n.Kind)
	return false
}

// unknown reports a key that the table does not have.
func (c *checker) unknown(f *tree.Field, table string, known []string) {
	where := "at the top level"
	if table != "" {
		where = "in [" + table + "]"
	}
	c.fail(c.at(f.Off), CodeUnknownKey, "unknown key %s %s: the keys are %s%s",
		strconv.Quote(f.Key), where, strings.Join(known, ", "), nearest.DidYouMean(f.Key, known))
}

// namesIn returns the names of the keys and tables in a table, whose name ends in a dot.
func namesIn(table string) (all []string) {
	for i := range keys {
		if rest, ok := strings.CutPrefix(keys[i].name, table); ok {
			name, _, _ := strings.Cut(rest, ".")
			all = append(all, name)
		}
	}
	return slices.Compact(all)
}

func (c *checker) policy(n *tree.Node) *Policy {
	if n.Get("paths") != nil && n.Get("layers") != nil { // zsbx profile --format json, which has a policy in it
		n = cmp.Or(n.Get("policy"), n)
	}
	p := &Policy{}
	c.table(n, p, "", "")
	return p
}

// table checks a table. The prefix is "linux." or "macos." in the overrides for one
// system, which have the same tables. The prefix and the table's name end in a dot.
func (c *checker) table(n *tree.Node, p *Policy, prefix, table string) {
	name := strings.TrimSuffix(prefix+table, ".")
	if !c.is(n, tree.Table, cmp.Or(name, "a policy")) {
		return
	}
	known := namesIn(table)
	if name == "" {
		known = append(known, syntax.Systems...)
	}
	for i := range n.Fields {
		f := &n.Fields[i]
		inner := table + f.Key
		at := slices.IndexFunc(keys[:], func(k key) bool { return k.name == inner })
		switch {
		case !slices.Contains(known, f.Key):
			c.unknown(f, name, known)
		case name == "" && slices.Contains(syntax.Systems, f.Key):
			part := p.part(f.Key)
			*part = &Policy{}
			c.table(f.Val, *part, f.Key+".", "")
		case at >= 0:
			c.key(&keys[at], f.Val, p, prefix+inner)
		default:
			c.table(f.Val, p, prefix, inner+".")
		}
	}
}

func (c *checker) key(k *key, n *tree.Node, p *Policy, what string) {
	var list []Named
	switch {
	case k.kind.single():
		v, ok := c.value(k, n, what)
		if !ok {
			return
		}
		list = []Named{v}
	case k.kind != textTable && k.kind != listTable:
		list = c.list(k, n, what)
	case c.is(n, tree.Table, what):
		for i := range n.Fields {
			list = append(list, c.named(k, &n.Fields[i], what+"."+n.Fields[i].Key)...)
		}
	}
	if err := k.put(p, list); err != nil {
		c.fail(c.at(n.Off), CodeValue, "bad %s %q: %v", measures[k.kind].noun, n.Text, err)
	}
}

// named checks a field of a table in which the user chooses the names.
func (c *checker) named(k *key, f *tree.Field, what string) (list []Named) {
	check := syntax.CheckEnvName
	from := c.at(f.Off)
	if k.kind == listTable {
		check = syntax.CheckListName
	}
	if err := check(f.Key); err != nil {
		c.fail(from, CodeValue, "%v", err)
	}
	if k.kind == listTable {
		list = c.list(k, f.Val, what)
	} else {
		if v, ok := c.value(k, f.Val, what); ok {
			list = []Named{{Value: v.Value, Origin: from}}
		}
	}
	for i := range list {
		list[i].Name = f.Key
	}
	return list
}

func (c *checker) list(k *key, n *tree.Node, what string) []Named {
	if !c.is(n, tree.Array, what) {
		return nil
	}
	list := make([]Named, 0, len(n.Items))
	entry := "an entry of " + what
	for _, item := range n.Items {
		read := c.value
		name := entry
		if item.Kind == tree.Table {
			switch k.kind {
			case pathList, pathCategory, socketList:
				read = c.path
				name = what
			case hostList:
				read = c.host
				name = what
			}
		}
		if v, ok := read(k, item, name); ok {
			list = append(list, v)
		}
	}
	return list
}

// value checks a value that stands alone, or an element of a list.
func (c *checker) value(k *key, n *tree.Node, what string) (Named, bool) {
	v := Named{Value: n.Text, Origin: c.at(n.Off)}
	ok := k.kind.limit() && n.Kind == tree.Integer || c.is(n, k.leaf(), what)
	return v, ok && c.text(n, k.wrong(v))
}

// text checks a string of the file. err is what is wrong with it, or nil.
func (c *checker) text(n *tree.Node, err error) bool {
	at := n.Off
	if bad, is := errors.AsType[*rule.Error](err); is {
		at += c.within(n, bad.Column-1)
	}
	return c.says(c.at(at), n.Text, err)
}

// within returns how far from its beginning a string has the byte i of its text. A string that is not
// written as it is read has all of it at its beginning.
func (c *checker) within(n *tree.Node, i int) int {
	for _, quotes := range []int{1, len(`"""`)} {
		rest := c.data[min(n.Off+quotes, len(c.data)):]
		if bytes.HasPrefix(rest, []byte(n.Text)) {
			return quotes + i
		}
	}
	return 0
}

// says checks a text. err is what is wrong with it, or nil.
func (c *checker) says(at Origin, text string, err error) bool {
	if err == nil && !utf8.ValidString(text) {
		err = fmt.Errorf("%q is not UTF-8", text)
	}
	if err == nil {
		return true
	}
	msg, hint := inWords(err)
	c.errs = append(c.errs, &Error{Origin: at, Code: CodeValue, Msg: msg, Hint: hint})
	return false
}

// path reads a table for a path: with path, optional (it may be missing) and, except for
// sockets, create (it is made if it is missing).
func (c *checker) path(k *key, n *tree.Node, what string) (v Named, ok bool) {
	known := []string{"path", "optional", "create"}
	if k.kind == socketList {
		known = known[:2]
	}
	v.Origin = c.at(n.Off)
	for i := range n.Fields {
		f := &n.Fields[i]
		if !slices.Contains(known, f.Key) {
			c.unknown(f, what, known)
			continue
		}
		switch f.Key {
		case "path":
			v.Value = f.Val.Text
			ok = c.is(f.Val, tree.String, "path") && c.text(f.Val, syntax.CheckPath(f.Val.Text))
		case "create":
			v.Create = c.is(f.Val, tree.Bool, f.Key) && f.Val.Text == "true"
		case "optional":
			v.Optional = c.is(f.Val, tree.Bool, f.Key) && f.Val.Text == "true"
		}
	}
	if n.Get("path") == nil {
		c.fail(v.Origin, CodeValue, "an entry of %s without a path", what)
	}
	return v, ok
}

// host reads a table for a host: with host, private (its addresses may be private) and ech (an
// encrypted handshake may be in its handshake).
func (c *checker) host(k *key, n *tree.Node, what string) (v Named, ok bool) {
	known := []string{"host", markPrivate, markECH}
	h := Host{Origin: c.at(n.Off)}
	for i := range n.Fields {
		f := &n.Fields[i]
		if !slices.Contains(known, f.Key) {
			c.unknown(f, what, known)
			continue
		}
		switch f.Key {
		case "host":
			h.Rule = f.Val.Text
			ok = c.is(f.Val, tree.String, "host")
		case markPrivate:
			h.Private = c.is(f.Val, tree.Bool, f.Key) && f.Val.Text == "true"
		case markECH:
			h.ECH = c.is(f.Val, tree.Bool, f.Key) && f.Val.Text == "true"
		}
	}
	v = h.named()
	host := n.Get("host")
	if host == nil {
		c.fail(v.Origin, CodeValue, "an entry of %s without a host", what)
	}
	return v, ok && c.text(host, k.wrong(v))
}
