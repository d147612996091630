package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Audit asks for a log of what ran: package track/audit writes it. There is one
// when anything is said about it. The keys are dir, as in Rule.Path; keep, how many
// days files are kept, "0" for ever; and required, "true" for no command without
// its line.
type Audit map[string]Named

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
	if a.put(p.own(h.OS).Audit, false); len(a) == 0 {
		return nil, nil
	}
	x := expander{host: &h}
	dir, err := x.absolute(cmpOr(a["dir"].Value, DefaultAuditDir))
	if err != nil {
		return nil, Errors{{Origin: a["dir"].Origin, Code: CodeValue, Msg: fmt.Sprintf("the audit log's directory %q", a["dir"].Value), Err: err}}
	}
	l := &AuditLog{Dir: dir, Required: a["required"].Value == "true"}
	l.Keep, err = strconv.Atoi(cmpOr(a["keep"].Value, strconv.Itoa(DefaultAuditKeep)))
	return l, err
}

// check is the type of a key in a policy file, and what is wrong with a value.
func (a Audit) check(key, v string) (nodeKind, error) {
	switch key {
	case "dir":
		return stringNode, checkPath(v)
	case "keep":
		if days, err := strconv.ParseUint(v, 10, 32); err != nil || days > 36500 {
			return integerNode, errors.New("audit.keep: a number of days from 0, which is for ever, to 36500 is needed")
		}
		return integerNode, nil
	case "required":
		return boolNode, nil
	}
	return otherNode, nil
}

// put puts what p says over a; with forget, a is what was said for one system,
// which gives way.
func (a *Audit) put(p Audit, forget bool) {
	sum := Audit{}
	maps.Copy(sum, *a)
	for key, v := range p {
		if sum[key] = v; forget {
			delete(sum, key)
		}
	}
	*a = sum
}

// each gives what is said in the order of the keys, with the value as JSON has it.
func (a Audit) each(do func(key, value string, from Origin)) {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		text := a[key].Value
		if key == "dir" {
			text = QuoteTOML(text)
		}
		do(key, text, a[key].Origin)
	}
}

// widens lists what a stranger must not decide: where the log goes, when it is
// removed, and that it may be missing.
func (a Audit) widens(base Audit, w *widening) {
	a.each(func(key, _ string, from Origin) {
		if v := a[key].Value; key != "required" || v == "false" && base[key].Value == "true" {
			w.add("audit."+key, strconv.Quote(v), from)
		}
	})
}

func (c *checker) audit(n *node, table string, p *Audit) {
	if !c.is(n, tableNode, table) {
		return
	}
	a := Audit{}
	for i := range n.fields {
		f := &n.fields[i]
		if kind, err := a.check(f.key, f.val.text); kind == otherNode {
			c.unknown(f, table, "dir", "keep", "required")
		} else if c.is(f.val, kind, table+"."+f.key) {
			if a[f.key] = (Named{Value: f.val.text, Origin: c.loc.at(f.val.off)}); err != nil {
				c.fail(f.val.off, CodeValue, "%s", err.Error())
			}
		}
	}
	*p = a
}

func (a Audit) json() map[string]any {
	j := map[string]any{}
	a.each(func(key, _ string, _ Origin) {
		if j[key] = json.RawMessage(a[key].Value); key == "dir" {
			j[key] = a[key].Value
		}
	})
	return j
}
