package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/zsbx/zsbx/policy/glob"
	"github.com/zsbx/zsbx/policy/internal/tree"
)

// list checks the elements of a list.
func (c *checker) list(k *key, items []*tree.Node, what string) []value {
	kind := tree.String
	if k.kind == portList {
		kind = tree.Integer
	}
	list := make([]value, 0, len(items))
	for _, item := range items {
		c.count(item, item.Off)
		v, ok := value{from: c.at(item)}, false
		switch {
		case item.Kind == tree.Table && (k.kind == pathList || k.kind == socketList):
			ok = c.path(&v, item, what, k.kind == pathList)
		case item.Kind != kind:
			c.is(item, kind, "an entry of "+what)
		case k.kind == portList:
			v.text, ok = c.port(item)
		default:
			v.text, ok = c.text(item, what, k.check)
		}
		if ok {
			list = append(list, v)
		}
	}
	return list
}

// path reads a table that stands for a path: with path, optional (it may be missing)
// and, where that is known, create (it is made when missing).
func (c *checker) path(v *value, n *tree.Node, what string, create bool) (ok bool) {
	known := []string{"path", "optional", "create"}
	if !create {
		known = known[:2]
	}
	for i := range n.Fields {
		f := &n.Fields[i]
		switch {
		case !slices.Contains(known, f.Key):
			c.unknown(f, what, known...)
		case f.Key == "path":
			v.text, ok = c.text(f.Val, "path", checkPath)
		case !c.is(f.Val, tree.Bool, f.Key):
		case f.Key == "create":
			v.create = f.Val.Text == "true"
		default:
			v.optional = f.Val.Text == "true"
		}
	}
	if n.Get("path") == nil {
		c.fail(c.at(n), CodeValue, "an entry of %s without a path", what)
	}
	return ok
}

// port reads a TCP port.
func (c *checker) port(n *tree.Node) (string, bool) {
	// Base 0 is what TOML has: 0x, 0o, 0b and underscores. A leading
	// zero, which would mean octal here, is no TOML and no JSON.
	number, err := strconv.ParseInt(n.Text, 0, 64)
	if err != nil || number < 1 || number > 65535 {
		c.fail(c.at(n), CodeValue, "port %s is not between 1 and 65535", n.Text)
		return "", false
	}
	return strconv.FormatInt(number, 10), true
}

// text reads a string and checks what it says.
func (c *checker) text(n *tree.Node, what string, check func(string) error) (string, bool) {
	if !c.is(n, tree.String, what) {
		return "", false
	}
	err := check(n.Text)
	if err == nil && !utf8.ValidString(n.Text) {
		err = fmt.Errorf("%q is not UTF-8", n.Text)
	}
	if err != nil {
		c.fail(c.at(n), CodeValue, "%s", err.Error())
	}
	return n.Text, err == nil
}

// named checks a field of a table in which each name is somebody's own.
func (c *checker) named(k *key, f *tree.Field, what string) []value {
	if k.kind == listTable {
		if err := checkListName(f.Key); err != nil {
			c.fail(c.keyAt(f), CodeValue, "%s", err.Error())
		}
		what += "." + f.Key
		if !c.is(f.Val, tree.Array, what) {
			return nil
		}
		list := c.list(k, f.Val.Items, what)
		for i := range list {
			list[i].name = f.Key
		}
		return list
	}
	c.count(f.Val, f.Off)
	if err := checkEnvName(f.Key); err != nil {
		c.fail(c.keyAt(f), CodeValue, "%s", err.Error())
		return nil
	}
	text, ok := c.text(f.Val, what+"."+f.Key, k.check)
	if !ok {
		return nil
	}
	return []value{{name: f.Key, text: text, from: c.keyAt(f)}}
}

// scalar checks a value that stands alone.
func (c *checker) scalar(k *key, n *tree.Node, what string) bool {
	ok, err := true, error(nil)
	switch {
	case k.kind == boolean:
		return c.is(n, tree.Bool, what)
	case k.kind == number:
		ok = c.is(n, tree.Integer, what)
	case k.kind != limit || n.Kind != tree.Integer:
		ok = c.is(n, tree.String, what)
	}
	switch {
	case !ok:
		return false
	case k.kind == shared && n.Text != wordPrivate && n.Text != wordShared:
		err = fmt.Errorf("%s is %s: it must be %q or %q", what, strconv.Quote(n.Text), wordPrivate, wordShared)
	case k.check != nil && n.Kind == tree.String:
		_, ok = c.text(n, what, k.check)
		return ok
	case k.check != nil:
		err = k.check(n.Text)
	}
	if err != nil {
		c.fail(c.at(n), CodeValue, "%v", err)
	}
	return err == nil
}

// hasControl reports whether s has a control character.
func hasControl(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f {
			return strings.IndexFunc(s[i:], tree.IsControl) >= 0
		}
	}
	return false
}

// maxPath is PATH_MAX less the final NUL, in bytes.
const maxPath = 4095

// checkPath says what is wrong with a path as it is written in a rule.
func checkPath(s string) error {
	switch {
	case s == "":
		return errors.New("an empty path")
	case len(s) > maxPath:
		return fmt.Errorf("a path of %d bytes: the longest that can exist has %d", len(s), maxPath)
	case hasControl(s):
		return fmt.Errorf("path %q has a control character", s)
	case strings.Contains(s, "\uFFFD"):
		return fmt.Errorf("path %q has U+FFFD, which stands for text that could not be read", s)
	case s[0] == '~' && len(s) > 1 && s[1] != '/':
		return fmt.Errorf("path %q: another user's home directory must be written out (a file of that name is %q)", s, "./"+s)
	}
	return checkVariables(s)
}

// checkPresetName says what is wrong with the name of a preset. Whether there
// is such a preset is not known here.
func checkPresetName(s string) error {
	name, _ := strings.CutSuffix(s, toolsOnly)
	if name == "" || len(s) > 64 {
		return fmt.Errorf("bad preset name %q", s)
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != ':' {
			return fmt.Errorf("bad preset name %q", s)
		}
	}
	return nil
}

func checkEnvMode(s string) error {
	switch EnvMode(s) {
	case EnvScrubbed, EnvSanitized, EnvInherit, EnvVars:
		return nil
	}
	return fmt.Errorf("unknown environment mode %q: use scrubbed, sanitized, inherit or vars", s)
}

// checkEnvName says what is wrong with the name of a variable. POSIX has
// letters, digits and underscores; what npm, bash and others use beyond that
// is taken as well.
func checkEnvName(s string) error {
	if s == "" {
		return errors.New("an empty variable name")
	}
	if '0' <= s[0] && s[0] <= '9' {
		return fmt.Errorf("variable name %q starts with a digit", s)
	}
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '=' || c == '$' {
			return fmt.Errorf("variable name %q has %q", s, c)
		}
	}
	return nil
}

// checkEnvGlob says what is wrong with a name or a glob of names.
func checkEnvGlob(s string) error {
	if err := checkEnvName(s); err != nil {
		return err
	}
	if !glob.HasMeta(s) {
		return nil
	}
	_, err := glob.ParseName(s)
	return err
}

func checkEnvValue(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return errors.New("a variable's value has a NUL")
	}
	return nil
}
