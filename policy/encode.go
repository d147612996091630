package policy

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// EncodeTOML writes the policy as a file that DecodeTOML reads as the same
// meaning, in a fixed order, each rule with its origin as a comment. It fails
// for what no policy file can say, such as a path that is not UTF-8.
func (p *Policy) EncodeTOML(w io.Writer) error {
	if err := p.encodable(); err != nil {
		return err
	}
	t := &tomlWriter{w: bufio.NewWriter(w)}
	t.policy(p, "")
	if p.Linux != nil {
		t.policy(p.Linux, "linux.")
	}
	if p.MacOS != nil {
		t.policy(p.MacOS, "macos.")
	}
	return t.w.Flush()
}

// tomlWriter writes TOML; its errors come with Flush.
type tomlWriter struct {
	w     *bufio.Writer
	table string // the header that the next key needs; "" when it is written
	some  bool   // something was written
}

// entry is an element of a list, as TOML, and where it comes from.
type entry struct {
	text string
	from Origin
}

func (t *tomlWriter) policy(p *Policy, prefix string) {
	t.header(strings.TrimSuffix(prefix, "."))
	t.list("presets", len(p.Presets) > 0, namedEntries(p.Presets))
	t.header(prefix + "fs")
	for _, a := range []Access{Read, Read | Exec, Read | Write | Exec, Read | Write} {
		var list []entry
		for i := range p.FS.Rules {
			if r := &p.FS.Rules[i]; r.Access == a {
				list = append(list, r.entry())
			}
		}
		t.list(a.String(), len(list) > 0, list)
	}
	var deny []entry
	for _, d := range p.FS.Deny {
		deny = append(deny, entry{QuoteTOML(d.Pattern), d.Origin})
	}
	t.list("deny", len(deny) > 0, deny)
	if n := p.Private.Home; n.Value != "" {
		t.key("home", QuoteTOML(n.Value), n.Origin)
	}
	t.header(prefix + "fs.system")
	for _, c := range p.FS.System.categories() {
		var list []entry
		for i := range *c.rules {
			list = append(list, (*c.rules)[i].entry())
		}
		t.list(c.key, *c.rules != nil, list)
	}
	t.net(&p.Net, prefix)
	t.env(&p.Env, prefix)
	t.header(prefix + "limits")
	for _, l := range p.Limits.All() {
		if text := l.text(*l.Value); l.Said() && l.quote {
			t.key(l.Key, strconv.Quote(text), *l.From)
		} else if l.Said() {
			t.key(l.Key, text, *l.From)
		}
	}
	t.header(prefix + "process")
	if n := p.Private.Pids; n.Value != "" {
		t.key("pids", QuoteTOML(n.Value), n.Origin)
	}
	t.guard(&p.Guard, prefix)
	t.header(prefix + "audit")
	p.Audit.each(t.key)
}

func (t *tomlWriter) net(n *Net, prefix string) {
	t.header(prefix + "net")
	if n.Allow != nil {
		t.key("allow", strconv.FormatBool(n.Allow.Value), n.Allow.Origin)
	}
	t.list("connect_tcp", n.ConnectTCP != nil, portEntries(n.ConnectTCP))
	t.list("bind_tcp", n.BindTCP != nil, portEntries(n.BindTCP))
	t.list("unix", len(n.Unix) > 0, namedEntries(n.Unix))
}

func (t *tomlWriter) env(e *Env, prefix string) {
	t.header(prefix + "env")
	if e.Mode != "" {
		t.key("mode", QuoteTOML(string(e.Mode)), e.From)
	}
	t.list("allow", len(e.Allow) > 0, namedEntries(e.Allow))
	t.header(prefix + "env.set")
	for _, v := range lastOfEach(e.Set) {
		t.key(keyTOML(v.Name), QuoteTOML(v.Value), v.Origin)
	}
}

// header starts a table. It is written with the first key.
func (t *tomlWriter) header(name string) { t.table = name }

// start writes the pending header.
func (t *tomlWriter) start() {
	if t.table == "" {
		return
	}
	if t.some {
		t.w.WriteString("\n")
	}
	fmt.Fprintf(t.w, "[%s]\n", t.table)
	t.table, t.some = "", true
}

func (t *tomlWriter) key(key, value string, from Origin) {
	t.start()
	fmt.Fprintf(t.w, "%s = %s%s\n", key, value, comment(from))
	t.some = true
}

// list writes a list, one element a line, if there is one.
func (t *tomlWriter) list(key string, given bool, list []entry) {
	if !given {
		return
	}
	if len(list) == 0 {
		t.key(key, "[]", Origin{})
		return
	}
	t.key(key, "[", Origin{})
	for _, e := range list {
		fmt.Fprintf(t.w, "  %s,%s\n", e.text, comment(e.from))
	}
	t.w.WriteString("]\n")
}

// comment is an origin as a TOML comment.
func comment(o Origin) string {
	text := o.String()
	if text == "" {
		return ""
	}
	return "  # " + strings.Map(func(r rune) rune {
		if isControl(r) || r == utf8.RuneError {
			return '?'
		}
		return r
	}, text)
}

func (r *Rule) entry() entry {
	switch {
	case r.Create:
		return entry{"{ path = " + QuoteTOML(r.Path) + ", create = true }", r.Origin}
	case r.Optional:
		return entry{"{ path = " + QuoteTOML(r.Path) + ", optional = true }", r.Origin}
	}
	return entry{QuoteTOML(r.Path), r.Origin}
}

func namedEntries(names []Named) []entry {
	var list []entry
	for _, n := range names {
		text := QuoteTOML(n.Value)
		if n.Optional {
			text = "{ path = " + text + ", optional = true }"
		}
		list = append(list, entry{text, n.Origin})
	}
	return list
}

func portEntries(ports []Port) []entry {
	var list []entry
	for _, p := range ports {
		list = append(list, entry{strconv.Itoa(int(p.Number)), p.Origin})
	}
	return list
}

// QuoteTOML writes a string as TOML's basic strings are
// (https://toml.io/en/v1.0.0#string), so that no character steers a terminal.
func QuoteTOML(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case isControl(r) || isHidden(r):
			fmt.Fprintf(&b, `\U%08X`, r)
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
