package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// checker makes a Policy of a tree. It goes on after an error, so that all
// of them are seen at once.
type checker struct {
	loc   *locator
	errs  Errors
	rules int
}

func (c *checker) fail(off int, code Code, format string, args ...any) {
	c.errs = append(c.errs, &Error{Origin: c.loc.at(off), Code: code, Msg: fmt.Sprintf(format, args...)})
}

// count adds a rule and complains about the first one too many.
func (c *checker) count(off int) {
	if c.rules++; c.rules == MaxRules+1 {
		c.fail(off, CodeLimit, "more than %d rules", MaxRules)
	}
}

// is checks a value's type.
func (c *checker) is(n *node, kind nodeKind, what string) bool {
	if n.kind == kind {
		return true
	}
	c.fail(n.off, CodeType, "%s must be %s, not %s", what, kind, n.kind)
	return false
}

// unknown reports a key that the table does not have.
func (c *checker) unknown(f *field, table string, known ...string) {
	where := "at the top level"
	if table != "" {
		where = "in [" + strings.TrimSuffix(table, ".") + "]"
	}
	c.errs = append(c.errs, &Error{
		Origin: c.loc.at(f.off), Code: CodeUnknownKey,
		Msg: fmt.Sprintf("unknown key %s %s: there are %s%s", strconv.Quote(f.key), where, strings.Join(known, ", "), didYouMean(f.key, known)),
	})
}

// policy checks the whole file, or with prefix "linux." or "macos." the
// overrides for one system, which have the same tables.
func (c *checker) policy(n *node, prefix string) *Policy {
	p := &Policy{}
	if !c.is(n, tableNode, cmpOr(strings.TrimSuffix(prefix, "."), "a policy")) {
		return p
	}
	if prefix == "" && n.get("paths") != nil && n.get("layers") != nil { // zsbx profile --format json, which has a policy in it
		if inner := n.get("policy"); inner != nil {
			return c.policy(inner, "")
		}
	}
	for i := range n.fields {
		f := &n.fields[i]
		switch {
		case f.key == "presets":
			p.Presets = c.names(f.val, prefix+"presets", checkPresetName)
		case f.key == "fs":
			c.fs(f.val, prefix+"fs", &p.FS, &p.Private)
		case f.key == "net":
			c.net(f.val, prefix+"net", &p.Net)
		case f.key == "env":
			c.env(f.val, prefix+"env", &p.Env)
		case f.key == "limits":
			c.limits(f.val, prefix+"limits", &p.Limits)
		case f.key == "process":
			c.process(f.val, prefix+"process", &p.Private)
		case f.key == "guard":
			c.guard(f.val, prefix+"guard", &p.Guard)
		case f.key == "audit":
			c.audit(f.val, prefix+"audit", &p.Audit)
		case f.key == "linux" && prefix == "":
			p.Linux = c.policy(f.val, "linux.")
		case f.key == "macos" && prefix == "":
			p.MacOS = c.policy(f.val, "macos.")
		case prefix == "":
			c.unknown(f, "", "presets", "fs", "net", "env", "limits", "process", "guard", "audit", "linux", "macos")
		default:
			c.unknown(f, prefix, "presets", "fs", "net", "env", "limits", "process", "guard", "audit")
		}
	}
	return p
}

// cmpOr is cmp.Or for two strings.
func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c *checker) fs(n *node, table string, fs *FS, private *Private) {
	if !c.is(n, tableNode, table) {
		return
	}
	for i := range n.fields {
		f := &n.fields[i]
		what := table + "." + f.key
		switch f.key {
		case "ro":
			fs.Rules = append(fs.Rules, c.paths(f.val, what, Read)...)
		case "rox":
			fs.Rules = append(fs.Rules, c.paths(f.val, what, Read|Exec)...)
		case "rw":
			fs.Rules = append(fs.Rules, c.paths(f.val, what, Read|Write|Exec)...)
		case "rw_noexec":
			fs.Rules = append(fs.Rules, c.paths(f.val, what, Read|Write)...)
		case "deny":
			for _, d := range c.names(f.val, what, checkDeny) {
				fs.Deny = append(fs.Deny, Deny{Pattern: d.Value, Origin: d.Origin})
			}
		case "home":
			c.private(f.val, what, &private.Home)
		case "system":
			c.system(f.val, what, &fs.System)
		default:
			c.unknown(f, table, "ro", "rox", "rw", "rw_noexec", "deny", "home", "system")
		}
	}
}

func (c *checker) system(n *node, table string, s *System) {
	if !c.is(n, tableNode, table) {
		return
	}
	for i := range n.fields {
		f := &n.fields[i]
		what := table + "." + f.key
		switch f.key {
		case "executable":
			s.Executable = c.paths(f.val, what, Read|Exec)
		case "read_only":
			s.ReadOnly = c.paths(f.val, what, Read)
		case "read_write":
			s.ReadWrite = c.paths(f.val, what, Read|Write)
		default:
			c.unknown(f, table, "executable", "read_only", "read_write")
		}
	}
}

// paths reads a list of paths. An entry is a string, or a table with path,
// optional (it may be missing) and create (it is made when missing). The result is not nil even when the list is empty.
func (c *checker) paths(n *node, what string, a Access) []Rule {
	rules := []Rule{}
	if !c.is(n, arrayNode, what) {
		return rules
	}
	for _, item := range n.items {
		if r, ok := c.entry(item, what, true); ok {
			r.Access = a
			rules = append(rules, r)
		}
	}
	return rules
}

// entry reads one path of a list; create reports whether that key is known.
func (c *checker) entry(n *node, what string, create bool) (r Rule, ok bool) {
	c.count(n.off)
	r.Origin = c.loc.at(n.off)
	if n.kind != tableNode {
		r.Path, ok = c.text(n, "an entry of "+what, checkPath)
		return r, ok
	}
	for i := range n.fields {
		f := &n.fields[i]
		switch {
		case f.key == "path":
			r.Path, ok = c.text(f.val, "path", checkPath)
		case f.key == "optional":
			if c.is(f.val, boolNode, "optional") {
				r.Optional = f.val.text == "true"
			}
		case f.key == "create" && create:
			if c.is(f.val, boolNode, "create") {
				r.Create = f.val.text == "true"
			}
		case create:
			c.unknown(f, what, "path", "optional", "create")
		default:
			c.unknown(f, what, "path", "optional")
		}
	}
	if n.get("path") == nil {
		c.fail(n.off, CodeValue, "an entry of %s without a path", what)
	}
	r.Optional = r.Optional || r.Create
	return r, ok
}

// text reads a string and checks what it says.
func (c *checker) text(n *node, what string, check func(string) error) (string, bool) {
	if !c.is(n, stringNode, what) {
		return "", false
	}
	if err := check(n.text); err != nil {
		c.fail(n.off, CodeValue, "%s", err.Error())
		return "", false
	}
	return n.text, true
}

// names reads a list of strings; nil when it is empty.
func (c *checker) names(n *node, what string, check func(string) error) []Named {
	if !c.is(n, arrayNode, what) {
		return nil
	}
	var names []Named
	for _, item := range n.items {
		c.count(item.off)
		if s, ok := c.text(item, "an entry of "+what, check); ok {
			names = append(names, Named{Value: s, Origin: c.loc.at(item.off)})
		}
	}
	return names
}
