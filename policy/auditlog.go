package policy

import (
	"encoding/json"
	"fmt"
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
	dir := cmpOr(a.Dir.Value, DefaultAuditDir)
	x := expander{host: &h}
	abs, err := x.absolute(dir)
	if err != nil {
		return nil, Errors{{Origin: a.Dir.Origin, Code: CodeValue, Msg: fmt.Sprintf("the audit log's directory %q", dir), Err: err}}
	}
	l := &AuditLog{Dir: abs, Keep: DefaultAuditKeep, Required: a.Required.Value == "true"}
	if a.Keep.Value != "" {
		l.Keep, err = strconv.Atoi(a.Keep.Value)
	}
	return l, err
}

// auditKey is one of Audit's settings.
type auditKey struct {
	key  string
	kind nodeKind
	v    *Named
}

func (a *Audit) keys() [3]auditKey {
	return [3]auditKey{{"dir", stringNode, &a.Dir}, {"keep", integerNode, &a.Keep}, {"required", boolNode, &a.Required}}
}

// over puts what p says over a; with forget, a is what was said for one system,
// which gives way.
func (a *Audit) over(p *Audit, forget bool) {
	from := p.keys()
	for i, k := range a.keys() {
		if v := *from[i].v; v.Value != "" {
			*k.v = v
			if forget {
				*k.v = Named{}
			}
		}
	}
}

// widens lists what a stranger must not decide: where the log goes, when it is
// removed, and that it may be missing.
func (a *Audit) widens(base *Audit, w *widening) {
	for _, k := range a.keys() {
		if k.v.Value != "" && (k.kind != boolNode || k.v.Value == "false" && base.Required.Value == "true") {
			w.add("audit."+k.key, strconv.Quote(k.v.Value), k.v.Origin)
		}
	}
}

func (a *Audit) statements(add func(...string)) {
	for _, k := range a.keys() {
		if k.v.Value != "" {
			add("audit", k.key, strconv.Quote(k.v.Value))
		}
	}
}

func (c *checker) audit(n *node, table string, a *Audit) {
	if !c.is(n, tableNode, table) {
		return
	}
fields:
	for i := range n.fields {
		f := &n.fields[i]
		for _, k := range a.keys() {
			if k.key != f.key {
				continue
			}
			if c.is(f.val, k.kind, table+"."+f.key) {
				*k.v = Named{Value: f.val.text, Origin: c.loc.at(f.val.off)}
				if err := checkAudit(k); err != nil {
					c.fail(f.val.off, CodeValue, "%s", err.Error())
				}
			}
			continue fields
		}
		c.unknown(f, table, "dir", "keep", "required")
	}
}

func checkAudit(k auditKey) error {
	switch k.kind {
	case stringNode:
		return checkPath(k.v.Value)
	case integerNode:
		days, err := strconv.ParseUint(k.v.Value, 0, 64)
		if k.v.Value = strconv.FormatUint(days, 10); err != nil || days > 36500 {
			return fmt.Errorf("audit.keep: a number of days from 0, which is for ever, to 36500 is needed")
		}
	}
	return nil
}

func (t *tomlWriter) audit(a *Audit, prefix string) {
	t.header(prefix + "audit")
	for _, k := range a.keys() {
		if text := k.v.Value; text != "" {
			if k.kind == stringNode {
				text = quoteTOML(text)
			}
			t.key(k.key, text, k.v.Origin)
		}
	}
}

type jsonAudit map[string]any

func (a *Audit) json() jsonAudit {
	j := jsonAudit{}
	for _, k := range a.keys() {
		if k.v.Value != "" {
			j[k.key] = json.RawMessage(k.v.Value)
			if k.kind == stringNode {
				j[k.key] = k.v.Value
			}
		}
	}
	return j
}
