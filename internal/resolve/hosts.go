package resolve

import (
	"fmt"
	"slices"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// hosts resolves the list of hosts that limits the network.
func (rs *resolver) hosts(n *policy.Net, byFlag bool) {
	out := &rs.r.Net
	out.Mode = NetHosts
	out.From = policy.Origin{Source: "an empty list of hosts"}
	if len(n.Hosts) > 0 {
		out.From = n.Hosts[0].Origin
	}
	out.BindTCP = n.BindTCP
	rs.besideHosts(n, byFlag)
	list := &out.Hosts
	list.NXDomain = n.DenyBy.Value == "nxdomain"
	wrong := len(rs.errs)
	for _, h := range n.Hosts {
		r, err := rule.Parse(h.Rule, rule.Marks{Private: h.Private, ECH: h.ECH})
		list.Allowed = rs.addHost(list.Allowed, Host{Rule: r, Origin: h.Origin}, err)
	}
	for _, d := range n.DenyHosts {
		r, err := rule.ParseDenial(d.Value)
		list.Denied = rs.addHost(list.Denied, Host{Rule: r, Origin: d.Origin}, err)
	}
	marked(list.Allowed)
	if len(rs.errs) == wrong {
		rs.together(list)
	}
	list.Allowed = lasting(list.Allowed)
	list.Rules = rule.NewSet(rulesOf(list.Allowed), rulesOf(list.Denied))
	for i := range list.Allowed {
		h := &list.Allowed[i]
		if text := rule.Warning(&h.Rule); text != "" {
			w := &policy.Error{Origin: h.Origin, Code: policy.CodeValue, Msg: text}
			rs.r.Warnings = append(rs.r.Warnings, w)
		}
	}
}

// addHost adds a rule to a list, unless err says what is wrong with it.
func (rs *resolver) addHost(list []Host, h Host, err error) []Host {
	if err == nil {
		return append(list, h)
	}
	rs.fail(h.Origin, policy.CodeValue, "", err.Error())
	return list
}

// marked gives a flag's rule the private mark if another flag has the same rule with it, in any order: the
// second one is typed as the hint of a refusal says, on a command line that has the first one.
func marked(list []Host) {
	private := map[rule.Rule]Host{} // by the rule without the mark
	for _, h := range list {
		if fromFlag(h.Origin) && h.Private {
			plain := h.Rule
			plain.Private = false
			private[plain] = h
		}
	}
	for i, h := range list {
		wide, is := private[h.Rule]
		if is && fromFlag(h.Origin) {
			list[i] = wide
		}
	}
}

func rulesOf(list []Host) []rule.Rule {
	all := make([]rule.Rule, len(list))
	for i := range list {
		all[i] = list[i].Rule
	}
	return all
}

// lasting returns the rules that hold: of those for the same host and port the last one.
func lasting(list []Host) (out []Host) {
	type place struct {
		host string
		port uint16
	}
	seen := make(map[place]bool, len(list))
	for _, h := range slices.Backward(list) {
		at := place{h.Host(), h.Port}
		if !seen[at] {
			seen[at] = true
			out = append(out, h)
		}
	}
	slices.Reverse(out)
	return out
}

// besideHosts refuses what contradicts a list of hosts.
func (rs *resolver) besideHosts(n *policy.Net, byFlag bool) {
	from := rs.r.Net.From
	allow := n.Allow
	other := slices.IndexFunc(n.Hosts, func(h policy.Host) bool { return h.Origin.Source != allow.Origin.Source })
	if allow.Value == "true" && byFlag == fromFlag(allow.Origin) && other >= 0 { // see net
		h := &n.Hosts[other]
		rs.fail(allow.Origin, policy.CodeContradiction, "--allow-host "+shell.Quote(h.Rule),
			fmt.Sprintf("the whole network is allowed here, but %s limits it to hosts", h.Origin))
	}
	if n.ConnectTCP != nil && len(n.ConnectTCP)+len(n.Hosts) > 0 {
		ports := policy.Origin{Source: "an empty list of ports"}
		if len(n.ConnectTCP) > 0 {
			ports = n.ConnectTCP[0].Origin
		}
		rs.fail(ports, policy.CodeContradiction, "",
			fmt.Sprintf("the network is limited to ports here, but %s limits it to hosts", from))
	}
}

// noHosts refuses denials of hosts where no list says which hosts are allowed.
func (rs *resolver) noHosts(denials []policy.Named) {
	for _, d := range denials {
		rs.fail(d.Origin, policy.CodeContradiction, "",
			fmt.Sprintf("%s is denied, but nothing says which hosts are allowed: hosts, or --allow-host, must",
				rule.Quote(d.Value)))
	}
}

// together refuses lists that are wrong as a whole. A rule in one source may say something else about
// a host than one in another: the last one holds.
func (rs *resolver) together(list *Hosts) {
	const flags = "--"
	bySource := make(map[string][]Host)
	for _, h := range list.Allowed {
		from := h.Origin.Source
		if fromFlag(h.Origin) {
			from = flags
		}
		bySource[from] = append(bySource[from], h)
	}
	for _, part := range bySource {
		for _, p := range rule.Check(rulesOf(part), nil) {
			rs.fail(part[p.Index].Origin, policy.CodeContradiction, "", p.Msg)
		}
	}
	for _, p := range rule.Check(rulesOf(list.Allowed), rulesOf(list.Denied)) {
		if p.Denial {
			rs.fail(list.Denied[p.Index].Origin, policy.CodeContradiction, "", p.Msg)
		}
	}
}
