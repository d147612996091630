package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/compose"
	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/policy"
)

// observe lets the command reach all hosts, and notes which. That is done if the policy lists hosts, or says
// nothing of the network, and where this machine can do it. Once a run has succeeded the next one
// tries what was learnt.
func (l *learner) observe(c *compose.Composed, opts *supervise.Options) error {
	n := &c.Policy.Net
	limited := n.Hosts == nil && (n.Allow.Value != "" || n.ConnectTCP != nil || n.BindTCP != nil)
	if limited || l.enforces && len(l.from.More.Net.Hosts) > 0 {
		return nil
	}
	named := policy.Merge(c.Policy, &policy.Policy{Net: policy.Net{Hosts: []policy.Host{}}})
	observing := *opts
	observing.ObserveHosts = true
	plan, err := supervise.Plan(named, observing)
	if err != nil {
		return err
	}
	none := slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapHosts })
	if none && n.Hosts == nil {
		return nil
	}
	c.Policy = named
	opts.ObserveHosts = true
	return nil
}

// hostNeeds returns what was reached and is in no rule yet.
func (l *learner) hostNeeds() (all []learn.Need) {
	for i := range l.reached {
		r := &l.reached[i]
		known := l.base.Net.Hosts.Rules
		if known == nil || !known.Covers(r) {
			all = append(all, learn.Need{Key: "net.hosts", Host: r.String(), Private: r.Private})
		}
	}
	return all
}

// hostComments returns comments about the hosts that were learnt: about numeric addresses, and about
// wildcards that would allow several of the names. zsbx proposes no wildcard itself.
func (l *learner) hostComments() string {
	var b strings.Builder
	children := map[string][]string{}
	var parents []string
	for _, h := range l.from.More.Net.Hosts {
		r, err := rule.Parse(h.Rule, rule.Marks{Private: h.Private, ECH: h.ECH})
		if err != nil {
			continue
		}
		if r.Form == rule.Prefix {
			fmt.Fprintf(&b, "# %s: an address, which no name was asked for; whose it is may change\n", h.Rule)
			continue
		}
		wild := wildcard(&r)
		if wild == "" {
			continue
		}
		if children[wild] == nil {
			parents = append(parents, wild)
		}
		children[wild] = append(children[wild], h.Rule)
	}
	for _, wild := range parents {
		const many = 3
		if n := len(children[wild]); n >= many {
			fmt.Fprintf(&b, "# %q would allow %d of the hosts, and every other name there\n", wild, n)
		}
	}
	return b.String()
}

// wildcard returns the rule for all that is beside a name, or "" if there can be none.
func wildcard(r *rule.Rule) string {
	_, parent, _ := strings.Cut(r.Name, ".")
	if r.Form != rule.Exact || !strings.Contains(parent, ".") {
		return ""
	}
	wild := *r
	wild.Form = rule.Below
	wild.Name = parent
	if rule.Warning(&wild) != "" {
		return ""
	}
	return wild.String()
}
