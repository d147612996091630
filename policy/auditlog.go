package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// Audit asks for a log of what ran: package track/audit writes it. There is one
// when anything is said about it. A Value of "" is not said.
type Audit struct {
	Dir      Named // as in Rule.Path; DefaultAuditDir when not said
	Keep     Named // how many days files are kept, "0" for ever
	Required Named // "true": no command runs without its line
}

const (
	// DefaultAuditDir lies in zsbx's own directory, which no command can write.
	DefaultAuditDir = "${XDG_STATE_HOME:-~/.local/state}/zsbx/audit"
	// DefaultAuditKeep is how many days files are kept.
	DefaultAuditKeep = 90
)

// AuditLog is an Audit as one machine understands it.
type AuditLog struct {
	Dir      string // absolute; it need not exist
	Keep     int    // days, 0 for ever
	Required bool
}

// AuditLog is the log that the policy asks for, and nil for none. Only the
// path is looked at, as it is written.
func (p *Policy) AuditLog(h Host) (*AuditLog, error) {
	a := p.Audit
	a.over(&p.own(h.OS).Audit, false)
	if a == (Audit{}) {
		return nil, nil
	}
	x := expander{host: &h}
	dir, err := x.absolute(cmpOr(a.Dir.Value, DefaultAuditDir))
	if err != nil {
		return nil, Errors{{Origin: a.Dir.Origin, Code: CodeValue, Msg: fmt.Sprintf("the audit log's directory %q", a.Dir.Value), Err: err}}
	}
	l := &AuditLog{Dir: dir, Keep: DefaultAuditKeep, Required: a.Required.Value == "true"}
	if a.Keep.Value != "" {
		l.Keep, err = strconv.Atoi(a.Keep.Value)
	}
	return l, err
}

// auditKey is one of Audit's settings.
type auditKey struct {
	key   string
	kind  nodeKind
	v     *Named
	check func(string) error
}

func (a *Audit) keys() []auditKey {
	fine := func(string) error { return nil }
	return []auditKey{{"dir", stringNode, &a.Dir, checkPath}, {"keep", integerNode, &a.Keep, checkDays}, {"required", boolNode, &a.Required, fine}}
}

// said are the settings that are said.
func (a *Audit) said() []auditKey {
	return slices.DeleteFunc(a.keys(), func(k auditKey) bool { return k.v.Value == "" })
}

func checkDays(s string) error {
	if days, err := strconv.ParseUint(s, 10, 32); err != nil || days > 36500 {
		return errors.New("audit.keep: a number of days from 0, which is for ever, to 36500 is needed")
	}
	return nil
}

// over puts what p says over a; with forget, a is what was said for one system,
// which gives way.
func (a *Audit) over(p *Audit, forget bool) {
	for i, k := range p.keys() {
		if to := a.keys()[i].v; k.v.Value != "" && forget {
			*to = Named{}
		} else if k.v.Value != "" {
			*to = *k.v
		}
	}
}

// widens lists what a stranger must not decide: where the log goes, when it is
// removed, and that it may be missing.
func (a *Audit) widens(base *Audit, w *widening) {
	for _, k := range a.said() {
		if k.kind != boolNode || k.v.Value == "false" && base.Required.Value == "true" {
			w.add("audit."+k.key, strconv.Quote(k.v.Value), k.v.Origin)
		}
	}
}

func (a *Audit) statements(add func(...string)) {
	for _, k := range a.said() {
		add("audit", k.key, strconv.Quote(k.v.Value))
	}
}

func (c *checker) audit(n *node, table string, a *Audit) {
	if !c.is(n, tableNode, table) {
		return
	}
	for i := range n.fields {
		f := &n.fields[i]
		at := slices.IndexFunc(a.keys(), func(k auditKey) bool { return k.key == f.key })
		if at < 0 {
			c.unknown(f, table, "dir", "keep", "required")
		} else if k := a.keys()[at]; c.is(f.val, k.kind, table+"."+f.key) {
			*k.v = Named{Value: f.val.text, Origin: c.loc.at(f.val.off)}
			if err := k.check(f.val.text); err != nil {
				c.fail(f.val.off, CodeValue, "%s", err.Error())
			}
		}
	}
}

func (t *tomlWriter) audit(a *Audit, prefix string) {
	t.header(prefix + "audit")
	for _, k := range a.said() {
		text := k.v.Value
		if k.kind == stringNode {
			text = QuoteTOML(text)
		}
		t.key(k.key, text, k.v.Origin)
	}
}

func (a *Audit) json() map[string]any {
	j := map[string]any{}
	for _, k := range a.said() {
		if j[k.key] = json.RawMessage(k.v.Value); k.kind == stringNode {
			j[k.key] = k.v.Value
		}
	}
	return j
}
