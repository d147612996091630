package enforce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// planLinux fills in the plan for Linux: which means hold which promise, and
// which promises are left without any.
func (p *Plan) planLinux(host *policy.Host, opts Options) {
	if opts.InPlace && p.Caps.SeccompNotify && p.Caps.SeccompNotifyApart != "" {
		p.Caps.SeccompNotify, p.Caps.SeccompNotifyReason = false, p.Caps.SeccompNotifyApart
	}
	m := &mounts{p: p, host: host, opts: opts}
	if p.Caps.Landlock > 0 {
		m.prot = protectedSet(p.Policy, host, opts)
		p.Landlock = p.planRuleset(host, m)
	}
	if p.Landlock != nil {
		m.finish()
	} else {
		m.without(protectedSet(p.Policy, host, opts))
	}
	p.DropCapabilities = p.Caps.Capabilities &^ keptCapabilities(p.ScopesSignals())
	if p.Caps.Seccomp {
		if p.Seccomp = planFilter(p.Caps, p.Policy.Net, p.Mounts != nil && p.Mounts.UserNS); p.Seccomp == nil {
			p.Caps.SeccompReason = "the system calls of " + p.Caps.Arch + " are not known to this program"
		}
	}
	p.planMediation()
	p.filesGaps()
	p.networkGaps()
	p.socketGaps()
	p.processGaps()
	p.linuxLayers()
}

// planRuleset turns the policy's paths and ports into Landlock rules.
func (p *Plan) planRuleset(host *policy.Host, m *mounts) *Ruleset {
	know := abiOf(p.Caps.Landlock)
	rs := &Ruleset{
		ABI:       min(p.Caps.Landlock, maxABI),
		HandledFS: know.FS,
		Scoped:    know.Scoped,
	}
	rs.Paths = mergeRules(p.pathRules(host, m, know.FS))
	if p.Policy.Net.Mode != policy.NetOpen {
		rs.HandledNet = know.Net
	}
	if p.Policy.Net.Mode == policy.NetPorts {
		rs.Ports = portRules(p.Policy.Net, know.Net)
	}
	return rs
}

func (p *Plan) pathRules(host *policy.Host, m *mounts, handled uint64) []PathRule {
	trees := make([]tree, len(p.Policy.Paths))
	for i, t := range p.Policy.Paths {
		trees[i] = tree{path: t.Path, access: t.Access, mode: t.Mode, id: t.ID, origin: t.Rule.Origin}
	}
	d := newDenials(host, p.Policy.Deny, p.denyGap)
	out := make([]PathRule, 0, len(trees)+len(p.Policy.Net.Unix))
	d.mounts = m
	trees = d.apply(trees)
	p.linkGaps(d)
	for _, t := range m.keepOwn(d, trees) {
		r := rights(t.access, t.path, t.mode, handled)
		if t.listOnly {
			r = fsReadDir
		}
		out = append(out, PathRule{Path: t.path, Rights: r, ID: t.id, Dir: t.mode.IsDir(), Origin: t.origin})
	}
	if handled&fsResolveUnix != 0 {
		for _, s := range p.Policy.Net.Unix {
			out = append(out, PathRule{Path: s.Path, Rights: fsResolveUnix, ID: s.ID, Dir: s.Mode.IsDir(), Origin: s.Rule.Origin})
		}
	}
	return slices.DeleteFunc(out, func(r PathRule) bool { return r.Rights == 0 })
}

// portRules joins what may be connected to and listened on by port.
func portRules(net policy.ResolvedNet, handled uint64) []PortRule {
	var out []PortRule
	add := func(ports []policy.Port, right uint64) {
		for _, port := range ports {
			i := slices.IndexFunc(out, func(r PortRule) bool { return r.Port == port.Number })
			if i < 0 {
				i = len(out)
				out = append(out, PortRule{Port: port.Number, Origin: port.Origin})
			}
			out[i].Rights |= right & handled
		}
	}
	add(net.ConnectTCP, netConnectTCP)
	add(net.BindTCP, netBindTCP)
	out = slices.DeleteFunc(out, func(r PortRule) bool { return r.Rights == 0 })
	slices.SortFunc(out, func(a, b PortRule) int { return int(a.Port) - int(b.Port) })
	return out
}

// ScopesSignals says whether the command gets a Landlock domain of its own that
// keeps its signals inside (LANDLOCK_SCOPE_SIGNAL): what package track needs to
// hold it by an outer one.
func (p *Plan) ScopesSignals() bool {
	return p.Landlock != nil && p.Landlock.Scoped&scopeSignal != 0
}

func (p *Plan) denyGap(d policy.DenyPath, why string) {
	p.addGap(Gap{
		Name: GapDeny, Kind: Core,
		Promise: "no access to " + d.Pattern, Why: why,
		Origin: d.Deny.Origin,
	})
}

// filesGaps are the promises about files that can't be kept.
func (p *Plan) filesGaps() {
	if p.Landlock == nil {
		p.addGap(Gap{
			Name: GapFiles, Kind: Core,
			Promise: "files are read, written and executed only where allowed",
			Why:     "Landlock (Linux 5.13) is needed: " + orUnknown(p.Caps.LandlockReason),
		})
		for _, d := range p.Policy.Deny {
			p.denyGap(d, "Landlock is needed")
		}
		return
	}
	if p.Landlock.HandledFS&fsTruncate == 0 && p.Seccomp == nil {
		p.addGap(Gap{
			Name: GapTruncate, Kind: Core,
			Promise: "files are emptied only where they may be written",
			Why:     p.needs(3) + ", or seccomp: " + orUnknown(p.Caps.SeccompReason),
		})
	}
}

// networkGaps are the promises about the network that can't be kept.
func (p *Plan) networkGaps() {
	net := p.Policy.Net
	if net.Mode == policy.NetOpen {
		return
	}
	if p.Seccomp == nil {
		p.addGap(Gap{
			Name: GapNetwork, Kind: Core,
			Promise: "no network but what is allowed",
			Why:     "seccomp is needed to close it but for TCP: " + orUnknown(p.Caps.SeccompReason),
			Hint:    "--net",
			Origin:  net.From,
		})
	}
	if net.Mode != policy.NetPorts || p.Mediation != nil {
		return
	}
	if p.Landlock == nil || p.Landlock.HandledNet&netConnectTCP == 0 {
		p.addGap(Gap{
			Name: GapTCPPorts, Kind: Core,
			Promise: "only these TCP ports: " + portList(net),
			Why:     p.needs(4) + p.orSupervisor(),
			Hint:    "--no-net",
			Origin:  net.From,
		})
	}
	if len(net.BindTCP) > 0 {
		p.addGap(Gap{
			Name: GapTCPAutobind, Kind: Hardening,
			Promise: "no listening on a TCP port that the kernel chooses",
			Why:     "listen(2) on a socket that was not bound is refused by no kernel, and listening at all is allowed here",
			Origin:  net.BindTCP[0].Origin,
		})
	}
}

// socketGaps are the ways left to daemons outside.
func (p *Plan) socketGaps() {
	if p.Mediation != nil {
		return
	}
	if (p.Landlock == nil || p.Landlock.HandledFS&fsResolveUnix == 0) && !allowsAllPaths(p.Policy.Net) {
		g := Gap{
			Name: GapUnixSockets, Kind: Hardening,
			Promise: "no connection to sockets of programs outside, by path",
			Why:     p.needs(9) + p.orSupervisor(),
		}
		p.addGap(g)
	}
	if p.Landlock == nil || p.Landlock.Scoped&scopeAbstractUnix == 0 {
		p.addGap(Gap{
			Name: GapAbstractSockets, Kind: Hardening,
			Promise: "no connection to sockets of programs outside, by abstract name",
			Why:     p.needs(6) + p.orSupervisor(),
		})
	}
}

// processGaps are the ways left to processes outside, the terminal and the
// kernel.
func (p *Plan) processGaps() {
	if !p.ScopesSignals() {
		p.addGap(Gap{
			Name: GapSignals, Kind: Hardening,
			Promise: "no signals to processes outside",
			Why:     p.needs(6),
		})
	}
	if p.Seccomp != nil {
		return
	}
	why := "seccomp is needed: " + orUnknown(p.Caps.SeccompReason)
	p.addGap(Gap{Name: GapPriorities, Kind: Hardening,
		Promise: "no change of limits and priorities of processes outside", Why: why})
	p.addGap(Gap{Name: GapTerminal, Kind: Hardening,
		Promise: "no typing into the caller's terminal", Why: why})
	p.addGap(Gap{Name: GapKernel, Kind: Hardening,
		Promise: "no system calls that builds don't need: io_uring, bpf, perf, keyrings, mounts, user namespaces", Why: why})
}

// needs says which Landlock is missing.
func (p *Plan) needs(version int) string {
	need := fmt.Sprintf("Landlock ABI %d (Linux %s) is needed", version, abiOf(version).Linux)
	if p.Landlock == nil {
		return need + ": " + orUnknown(p.Caps.LandlockReason)
	}
	return fmt.Sprintf("%s, this kernel has %d", need, p.Caps.Landlock)
}

func orUnknown(reason string) string {
	if reason == "" {
		return "not available here"
	}
	return reason
}

// portList is what a policy allows of TCP, for people.
func portList(net policy.ResolvedNet) string {
	var parts []string
	for _, group := range []struct {
		verb  string
		ports []policy.Port
	}{{"connect to", net.ConnectTCP}, {"listen on", net.BindTCP}} {
		if len(group.ports) == 0 {
			continue
		}
		var n []string
		for _, port := range group.ports {
			n = append(n, fmt.Sprint(port.Number))
		}
		parts = append(parts, group.verb+" "+strings.Join(n, ", "))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

// linuxLayers lists the means in use.
func (p *Plan) linuxLayers() {
	if rs := p.Landlock; rs != nil {
		detail := fmt.Sprintf("ABI %d, %d rules; files: %s", rs.ABI, len(rs.Paths)+len(rs.Ports), bitNames(rs.HandledFS, fsNames()))
		if rs.HandledNet != 0 {
			detail += "; network: " + bitNames(rs.HandledNet, netNames())
		}
		if rs.Scoped != 0 {
			detail += "; scopes: " + bitNames(rs.Scoped, scopeNames())
		}
		if rs.HandledFS&fsRefer == 0 {
			detail += "; files can't be renamed or linked from one directory to another on this kernel"
		}
		p.Layers = append(p.Layers, Layer{"landlock", detail})
	}
	if f := p.Seccomp; f != nil {
		p.Layers = append(p.Layers, Layer{"seccomp",
			fmt.Sprintf("%d instructions; %d system calls decided", len(f.Program), f.decided())})
	}
	if p.Mediation != nil {
		p.Layers = append(p.Layers, p.Mediation.layer())
	}
	if p.Mounts != nil {
		p.Layers = append(p.Layers, p.Mounts.layer())
	}
	if p.DropCapabilities != 0 {
		p.Layers = append(p.Layers, Layer{"capabilities",
			"kept: " + capabilityNames(p.Caps.Capabilities&^p.DropCapabilities)})
	}
	if p.Landlock != nil || p.Seccomp != nil {
		p.Layers = append(p.Layers, Layer{"no_new_privs", "set-user-ID programs and file capabilities give nothing"})
	}
}
