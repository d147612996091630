package enforce

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// planLinux fills in the plan for Linux, step by step: none changes what
// another one found.
func (p *Plan) planLinux(host *policy.Host, opts Options) {
	if opts.InPlace && p.Caps.SeccompNotify && p.Caps.SeccompNotifyApart != "" {
		p.Caps.SeccompNotify, p.Caps.SeccompNotifyReason = false, p.Caps.SeccompNotifyApart
	}
	rep := &report{p: p, opts: opts, set: protectedSet(p.Policy, host, opts.protectRequest())}
	if p.Caps.Landlock > 0 {
		none := noNamespace(p.Caps, host, opts)
		rep.cut = subtract(denyRequest{trees: treesOf(p.Policy), deny: p.Policy.Deny, host: host, noMasks: none})
		rep.apart = heldByRules(rep.cut.trees, &rep.set, host, none, opts)
		rep.mounts = planMounts(p.mountRequest(host, opts, none, rep))
		p.Mounts = rep.mounts.plan
		p.Landlock = planRuleset(p.Policy, withoutPrivate(rep.apart.trees, p.Mounts), abiOf(p.Caps.Landlock), p.Caps.Landlock)
	}
	p.audit = audit{trees: writableTrees(p.Policy.Paths), watch: rep.watched(), near: rep.set.near, mounted: p.Mounts != nil}
	peers := p.Caps.mediates(p.Policy.Net, opts.Sockets)
	signals := p.Caps.signalMode(peers, opts.InPlace)
	if p.Caps.Seccomp {
		if p.Seccomp = planFilter(p.filterOptions(peers, signals)); p.Seccomp == nil {
			p.Caps.SeccompReason = "the system calls of " + p.Caps.Arch + " are not known to this program"
		}
	}
	held := p.ScopesSignals() || p.Seccomp != nil && signals == SignalsAll
	p.DropCapabilities = p.Caps.Capabilities &^ keptCapabilities(held)
	p.planMediation(opts.Sockets, signals)
	rep.linux()
	p.linuxLayers()
}

// filterOptions are what the filter depends on.
func (p *Plan) filterOptions(peers bool, signals SignalMode) filterOptions {
	return filterOptions{
		Arch: p.Caps.Arch, UID: p.Caps.UID, GID: p.Caps.GID, Capabilities: p.Caps.Capabilities,
		Net: p.Policy.Net, Peers: peers, Signals: signals,
		Truncate: abiOf(p.Caps.Landlock).FS&fsTruncate != 0,
		UserNS:   p.Mounts != nil && p.Mounts.UserNS,
	}
}

// noNamespace says why no mount namespace can be had, or "".
func noNamespace(caps Caps, host *policy.Host, opts Options) string {
	switch {
	case !caps.MountNS:
		return cmp.Or(caps.MountReason, "neither CAP_SYS_ADMIN nor a user namespace can be had")
	case opts.InPlace && !caps.Privileged:
		return "a program that replaces itself can't enter a user namespace"
	case host == nil || host.Lstat == nil || host.ReadDir == nil:
		return "nothing to look at files with"
	}
	return ""
}

// treesOf are the paths that the policy allows.
func treesOf(r *policy.Resolved) []tree {
	out := make([]tree, len(r.Paths))
	for i, t := range r.Paths {
		out[i] = tree{path: t.Path, access: t.Access, mode: t.Mode, id: t.ID, origin: t.Rule.Origin}
	}
	return out
}

// heldByRules takes zsbx's own files out of the trees where no mount can hold
// them.
func heldByRules(trees []tree, set *protection, host *policy.Host, none string, opts Options) apart {
	switch {
	case none == "" || len(set.own) == 0:
		return apart{trees: trees}
	case opts.NoOwn:
		return apart{trees: trees, open: set.openOwn("")}
	}
	return set.takeApart(trees, host)
}

// mountRequest is what the steps before found for a mount namespace.
func (p *Plan) mountRequest(host *policy.Host, opts Options, none string, rep *report) mountRequest {
	q := mountRequest{
		policy: p.Policy, host: host, userNS: !p.Caps.Privileged, none: none, noIPC: p.Caps.IPCReason,
		handled: abiOf(p.Caps.Landlock).FS, trees: rep.cut.trees,
		shareIPC: opts.ShareIPC, shareTerminals: opts.ShareTerminals, leaveMetadata: opts.LeaveMetadata,
		own: rep.set.ownMounts, protected: rep.set.mounts, table: rep.set.table,
	}
	for _, m := range rep.cut.masks {
		q.masks = append(q.masks, Mount{Path: m.path, Kind: Mask, Dir: m.dir, ID: m.id, Origin: m.origin})
	}
	if none == "" {
		q.hide = hideable(p.Policy, host, opts.Hide)
	}
	return q
}

// withoutPrivate leaves out the directories that the command gets for itself:
// the rules for these are made once they are there.
func withoutPrivate(trees []tree, mp *MountPlan) []tree {
	if mp == nil || len(mp.Private) == 0 {
		return trees
	}
	return slices.DeleteFunc(slices.Clone(trees), func(t tree) bool {
		return slices.ContainsFunc(mp.Private, func(d PrivateDir) bool { return d.Path == t.path })
	})
}

// planRuleset turns trees, sockets and ports into Landlock rules.
func planRuleset(r *policy.Resolved, trees []tree, know abi, version int) *Ruleset {
	rs := &Ruleset{
		ABI:       min(version, maxABI),
		HandledFS: know.FS,
		Scoped:    know.Scoped,
		Paths:     mergeRules(pathRules(trees, r.Net.Unix, know.FS)),
	}
	if r.Net.Mode != policy.NetOpen {
		rs.HandledNet = know.Net
	}
	if r.Net.Mode == policy.NetPorts {
		rs.Ports = portRules(r.Net, know.Net)
	}
	return rs
}

func pathRules(trees []tree, sockets []policy.Path, handled uint64) []PathRule {
	out := make([]PathRule, 0, len(trees)+len(sockets))
	for _, t := range trees {
		r := rights(t.access, t.path, t.mode, handled)
		if t.listOnly {
			r = fsReadDir
		}
		out = append(out, PathRule{Path: t.path, Rights: r, ID: t.id, Dir: t.mode.IsDir(), Origin: t.origin})
	}
	if handled&fsResolveUnix != 0 {
		for _, s := range sockets {
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

// holdsSignals says whether the command's signals stay inside, by whatever means.
func (p *Plan) holdsSignals() bool {
	return p.ScopesSignals() || p.Mediation != nil && p.Mediation.Signals == SignalsAll
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
	if p.Mediation.mediates() {
		p.Layers = append(p.Layers, Layer{"sockets", p.Mediation.String()})
	}
	if p.holdsSignals() {
		p.Layers = append(p.Layers, p.signalLayer())
	}
	if p.Mounts != nil {
		p.Layers = append(p.Layers, Layer{"mounts", p.Mounts.String()})
	}
	if p.DropCapabilities != 0 {
		p.Layers = append(p.Layers, Layer{"capabilities",
			"kept: " + capabilityNames(p.Caps.Capabilities&^p.DropCapabilities)})
	}
	if p.Landlock != nil || p.Seccomp != nil {
		p.Layers = append(p.Layers, Layer{"no_new_privs", "set-user-ID programs and file capabilities give nothing"})
	}
}
