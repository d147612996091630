package policy

import (
	"errors"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/egress/rule"
)

// The words for what a rule for a host says beside its text, as in policy files.
const (
	markPrivate = "private"
	markECH     = "ech"
)

// named returns a rule for a host as keys have values: the marks are the words of its name.
func (h *Host) named() Named {
	var marks []string
	if h.Private {
		marks = append(marks, markPrivate)
	}
	if h.ECH {
		marks = append(marks, markECH)
	}
	return Named{Name: strings.Join(marks, " "), Value: h.Rule, Origin: h.Origin}
}

// hostOf is the reverse of named.
func hostOf(v Named) Host {
	marks := strings.Fields(v.Name)
	return Host{
		Rule:    v.Value,
		Private: slices.Contains(marks, markPrivate),
		ECH:     slices.Contains(marks, markECH),
		Origin:  v.Origin,
	}
}

// parse reads the rule.
func (h *Host) parse() (rule.Rule, error) {
	return rule.Parse(h.Rule, rule.Marks{Private: h.Private, ECH: h.ECH})
}

// checkDenial returns what is wrong with a denial of a host.
func checkDenial(text string) error {
	_, err := rule.ParseDenial(text)
	return err
}

// opensHost reports whether a rule allows something that the weaker rules do not.
func opensHost(after Named, _ string, base *weaker) bool {
	h := hostOf(after)
	r, err := h.parse()
	return err != nil || !base.hosts().Covers(&r)
}

// hostRules returns the rules for hosts, without those that are wrong.
func (p *Policy) hostRules() *rule.Set {
	var rules []rule.Rule
	for i := range p.Net.Hosts {
		r, err := p.Net.Hosts[i].parse()
		if err == nil {
			rules = append(rules, r)
		}
	}
	return rule.NewSet(rules, nil)
}

// wrong returns what is wrong with a value, or nil.
func (k *key) wrong(v Named) error {
	if k.kind == hostList {
		h := hostOf(v)
		_, err := h.parse()
		return err
	}
	if k.check == nil {
		return nil
	}
	return k.check(v.Value)
}

// inWords returns the message for a value that is wrong, and what to type or "". What is to be
// written in its place is part of the message.
func inWords(err error) (msg, hint string) {
	bad, is := errors.AsType[*rule.Error](err)
	switch {
	case !is || bad.Hint == "":
		return err.Error(), ""
	case strings.HasPrefix(bad.Hint, "zsbx "):
		return bad.Msg, bad.Hint
	}
	return bad.Msg + "; write " + rule.Quote(bad.Hint), ""
}
