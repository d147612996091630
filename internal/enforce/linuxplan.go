package enforce

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/zsbx/zsbx/internal/enforce/broker"
	"github.com/zsbx/zsbx/internal/enforce/deny"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// planLinux fills in the plan for Linux. Each step uses the results of earlier steps without
// changing them.
func (p *Plan) planLinux(h *host.Host, opts Options) {
	table := sync.OnceValue(func() mounts.Table { return mounts.ReadTable(h) })
	rep := &report{p: p, opts: opts, set: protect.Find(p.Policy, h, opts.protectRequest(table))}
	if p.Caps.Landlock > 0 {
		none := p.noNamespace(h)
		rep.cut = deny.Subtract(p.denyRequest(h, none, table))
		trees := rep.cut.Trees
		if none != "" && len(rep.set.ZsbxFiles) > 0 {
			trees, rep.taken = rep.set.TakeOut(trees, h, mounts.NoNamespace(none), opts.accepts(GapZsbxFiles))
		}
		rep.mounts = mounts.New(p.mountRequest(h, none, table, rep))
		p.Mounts = rep.mounts.Plan
		p.opened = p.openedBy(&opts.Try, &rep.set)
		p.tmp = rep.mounts.Tmp
		p.Landlock = planRuleset(p.Policy, trees, p.Mounts, p.Caps.Landlock)
		p.own = p.Policy.Net.OwnOnly() && p.noOwnNet() == ""
		p.planHosts(h, opts)
		if p.own { // datagrams have their addresses in memory, where the broker can't look
			p.Landlock.HandledNet &^= landlock.NetBindUDP | landlock.NetConnectSendUDP
		}
		if p.shared() {
			p.Landlock.Ports = portRules(p.Policy.Net, p.Landlock.HandledNet)
		}
	} else {
		rep.mounts = mounts.Result{None: noLandlock, Home: noLandlock, Pids: noLandlock, Try: noLandlock}
	}
	p.planAudit(rep)
	peers := p.planFilter(h, opts)
	p.DropCapabilities = p.Caps.Capabilities &^ keptCapabilities(p.keepsSignals())
	if p.Seccomp != nil && (peers || p.own || p.signals != seccomp.SignalsKernel || p.recording != nil) {
		p.Broker = &broker.Policy{
			Net:          p.Policy.Net,
			Peers:        peers,
			Own:          p.own,
			Hosts:        p.hosts,
			Signals:      p.signals,
			Names:        p.names,
			Capabilities: p.keeps(),
		}
	}
	rep.linux()
}

// denyRequest returns the request to subtract the denials.
func (p *Plan) denyRequest(h *host.Host, none string, table func() mounts.Table) deny.Request {
	q := deny.Request{Trees: treesOf(p.Policy), Deny: p.Policy.Deny, Host: h, NoMasks: none}
	if p.Policy.Private.Home.Is() && none == "" {
		q.Private, _ = mounts.PrivateHome(p.Policy, h)
	}
	if len(q.Deny) > 0 && h != nil {
		q.Twice = table().Twice()
		q.Unread = table().Unread
		q.Same = func(p string) ([]string, error) { return table().Same(h, p) }
	}
	return q
}

// planAudit decides what is compared when the command has ended.
func (p *Plan) planAudit(rep *report) {
	p.audit = rep.set.Audit
	p.audit.Trees = mounts.WritableTrees(p.Policy.Paths)
	p.audit.Later = rep.cut.Later
	p.found = rep.cut.Searched
	p.audit.Mounted = p.Mounts != nil
	for _, m := range rep.cut.Masks { // a directory above may be renamed, and a new one made
		p.audit.Paths = append(p.audit.Paths, protect.Compared{Path: m.Path, Kind: protect.Denied})
	}
}

// planFilter compiles the filter. It returns whether the broker decides about sockets.
func (p *Plan) planFilter(h *host.Host, opts Options) (peers bool) {
	if !p.privatePids() { // there processes outside have no numbers
		p.signals = p.Caps.SignalMode()
	}
	if asksNames(p.Policy.Net) {
		p.names = broker.NameServers(h)
	}
	closes := len(p.names) > 0 || p.hosts != nil // what Landlock can't
	peers = p.Caps.NeedsBroker(p.Policy.Net) || closes && p.Caps.Seccomp && p.Caps.SeccompNotify
	if !p.Caps.Seccomp {
		return peers
	}
	q := p.filterOptions(peers)
	p.Seccomp = seccomp.Compile(q)
	if p.Seccomp == nil {
		p.signals = seccomp.SignalsKernel
		p.Caps.SeccompReason = "the system calls of " + p.Caps.Arch + " are not known to this program"
	} else if opts.Explain && p.Caps.SeccompNotify {
		q.Record = true
		p.recording = seccomp.Compile(q)
		p.model = opts.Model
	}
	return peers
}

// privatePids reports whether the command has its own PID namespace.
func (p *Plan) privatePids() bool { return p.Mounts != nil && p.Mounts.Pids }

func (p *Plan) filterOptions(peers bool) seccomp.Options {
	handled := landlock.Of(p.Caps.Landlock).FS
	return seccomp.Options{
		Arch:         p.Caps.Arch,
		UID:          p.Caps.UID,
		GID:          p.Caps.GID,
		Capabilities: p.Caps.Capabilities,
		Net:          p.Policy.Net,
		Peers:        peers,
		Names:        peers && (len(p.names) > 0 || p.shared()),
		Own:          p.own,
		Signals:      p.signals,
		Truncate:     handled&landlock.FSTruncate != 0,
		IoctlDev:     handled&landlock.FSIoctlDev != 0,
		UserNS:       p.Mounts != nil && p.Mounts.UserNS,
		Pids:         p.privatePids(),
	}
}

// noNamespace returns why no mount namespace can be made, or "".
func (p *Plan) noNamespace(h *host.Host) string {
	switch {
	case !p.Caps.MountNS:
		return cmp.Or(p.Caps.MountReason, "neither CAP_SYS_ADMIN nor a user namespace is available")
	case h == nil:
		return "no host to look at files with"
	}
	return ""
}

// treesOf returns the paths that the policy allows.
func treesOf(r *resolve.Resolved) []deny.Tree {
	out := make([]deny.Tree, len(r.Paths))
	for i, t := range r.Paths {
		out[i] = deny.Tree{
			Path:   t.Path,
			Access: t.Access,
			Mode:   t.Mode,
			ID:     t.ID,
			Origin: t.Rule.Origin,
			Data:   t.Rule.Data,
		}
	}
	return out
}

// mountRequest returns the request for a mount namespace, from the results of earlier steps.
func (p *Plan) mountRequest(h *host.Host, none string, table func() mounts.Table, rep *report) mounts.Request {
	opts := &rep.opts
	for i := range rep.set.Mounts {
		rep.set.Mounts[i].Users = true
	}
	try := opts.Try
	try.None = cmp.Or(try.None, p.Caps.TryReason)
	q := mounts.Request{
		Policy:  p.Policy,
		Host:    h,
		UserNS:  !p.Caps.Privileged,
		By:      p.Caps.UserNSBy,
		Handled: landlock.Of(p.Caps.Landlock).FS,
		Trees:   rep.cut.Trees,
		Mounts:  slices.Concat(rep.set.ZsbxMounts, rep.set.Mounts),
		Table:   table,
		Try:     try,

		None:   none,
		NoIPC:  p.Caps.IPCReason,
		NoPids: p.Caps.PidsReason,
		NoHome: p.Caps.HomeReason,

		ShareIPC:       opts.accepts(GapIPC),
		ShareTerminals: opts.accepts(GapTerminals),
		LeaveMetadata:  opts.accepts(GapMetadata),
	}
	for _, m := range rep.cut.Masks {
		mask := mounts.Mount{Path: m.Path, Kind: mounts.Mask, Dir: m.Mode.IsDir(), ID: m.ID, Origin: m.Origin}
		q.Mounts = append(q.Mounts, mask)
	}
	if none == "" {
		q.Hide = protect.Hideable(p.Policy, h, opts.Hide)
	}
	return q
}

// planRuleset turns trees, sockets and ports into Landlock rules.
func planRuleset(r *resolve.Resolved, trees []deny.Tree, mp *mounts.Plan, version int) *landlock.Ruleset {
	know := landlock.Of(version)
	rs := &landlock.Ruleset{
		ABI:       min(version, landlock.MaxABI),
		HandledFS: know.FS,
		Scoped:    know.Scoped,
		Paths:     landlock.MergeRules(pathRules(trees, mp, r.Net.Unix, know.FS)),
	}
	if r.Net.Mode != resolve.NetOpen {
		rs.HandledNet = know.Net
	}
	if r.Net.Mode == resolve.NetPorts {
		rs.Ports = portRules(r.Net, know.Net)
	}
	return rs
}

// pathRules returns the rules for paths. It leaves out private directories, since their rules
// are made when they exist.
func pathRules(trees []deny.Tree, mp *mounts.Plan, sockets []resolve.Path, handled uint64) []landlock.PathRule {
	out := make([]landlock.PathRule, 0, len(trees)+len(sockets))
	for _, t := range trees {
		if mp != nil && slices.ContainsFunc(mp.Private, func(d mounts.PrivateDir) bool { return d.Path == t.Path }) {
			continue
		}
		rights := landlock.Rights(t.Access, t.Path, t.Mode, handled)
		switch {
		case t.ListOnly:
			rights = landlock.FSReadDir
		case t.Data:
			rights &^= landlock.FSMakeSym
		}
		out = append(out, landlock.PathRule{
			Path:    t.Path,
			Rights:  rights,
			ID:      t.ID,
			Dir:     t.Mode.IsDir(),
			Part:    t.Part,
			Origin:  t.Origin,
			Overlay: mp.Layered(t.Path),
		})
	}
	if handled&landlock.FSResolveUnix != 0 {
		for _, s := range sockets {
			out = append(out, landlock.PathRule{
				Path:    s.Path,
				Rights:  landlock.FSResolveUnix,
				ID:      s.ID,
				Dir:     s.Mode.IsDir(),
				Origin:  s.Rule.Origin,
				Overlay: mp.Layered(s.Path),
			})
		}
	}
	return slices.DeleteFunc(out, func(r landlock.PathRule) bool { return r.Rights == 0 })
}

// portRules joins the rules for connecting and listening by port.
func portRules(net resolve.ResolvedNet, handled uint64) []landlock.PortRule {
	var out []landlock.PortRule
	add := func(ports []policy.Port, right uint64) {
		for _, port := range ports {
			i := slices.IndexFunc(out, func(r landlock.PortRule) bool { return r.Port == port.Number })
			if i < 0 {
				i = len(out)
				out = append(out, landlock.PortRule{Port: port.Number, Origin: port.Origin})
			}
			out[i].Rights |= right & handled
		}
	}
	add(net.ConnectTCP, landlock.NetConnectTCP)
	add(net.BindTCP, landlock.NetBindTCP)
	out = slices.DeleteFunc(out, func(r landlock.PortRule) bool { return r.Rights == 0 })
	slices.SortFunc(out, func(a, b landlock.PortRule) int { return int(a.Port) - int(b.Port) })
	return out
}

// ScopesSignals reports whether the command gets its own Landlock domain that keeps its signals
// inside (LANDLOCK_SCOPE_SIGNAL). Package track's tracker Domain needs that.
func (p *Plan) ScopesSignals() bool {
	return p.Landlock != nil && p.Landlock.Scoped&landlock.ScopeSignal != 0
}

// keepsSignals reports whether anything keeps the command's signals inside.
func (p *Plan) keepsSignals() bool {
	return p.ScopesSignals() || p.privatePids() || p.signals == seccomp.SignalsAll
}

// Layers returns the mechanisms in use, for people.
func (p *Plan) Layers() []Layer {
	var all []Layer
	add := func(name, detail string) { all = append(all, Layer{name, detail}) }
	if p.Seatbelt != nil {
		const what = "files, network, services, signals, what other programs could be asked to do"
		add("seatbelt", fmt.Sprintf("a profile of %d rules: %s", p.profileRules, what))
	}
	if p.Landlock != nil {
		add("landlock", landlockText(p.Landlock))
	}
	if f := p.Seccomp; f != nil {
		add("seccomp", fmt.Sprintf("%d instructions; %d system calls decided", len(f.Program), f.Decided))
	}
	if p.Broker.ChecksSockets() {
		add("sockets", p.Broker.String())
	}
	if why := p.unnamed(); why != "" {
		add("names", "not resolved: "+why)
	} else if p.Broker.ChecksSockets() && len(p.names) > 0 {
		add("names", fmt.Sprintf("asked of %v by UDP and TCP; no other UDP", p.names))
	}
	if p.Policy.Net.OwnOnly() && p.Policy.OS == "linux" {
		add("localhost", p.ownText())
	}
	if p.Policy.Net.Mode == resolve.NetHosts {
		add("hosts", p.hostsText())
	}
	if p.keepsSignals() {
		all = append(all, p.signalLayer())
	}
	if p.Mounts != nil {
		add("mounts", p.Mounts.String())
	}
	if p.DropCapabilities != 0 {
		add("capabilities", "kept: "+p.keptText())
	}
	if p.Landlock != nil || p.Seccomp != nil {
		add("no_new_privs", "set-user-ID programs and file capabilities give nothing")
	}
	if p.tmp != "" {
		add("tmp", p.tmp)
	}
	return all
}

// landlockText says what a ruleset restricts, for people.
func landlockText(rs *landlock.Ruleset) string {
	files := landlock.BitNames(rs.HandledFS, landlock.FSNames[:])
	text := fmt.Sprintf("ABI %d, %d rules; files: %s", rs.ABI, len(rs.Paths)+len(rs.Ports), files)
	if rs.HandledNet != 0 {
		text += "; network: " + landlock.BitNames(rs.HandledNet, landlock.NetNames[:])
	}
	if rs.Scoped != 0 {
		text += "; scopes: " + landlock.BitNames(rs.Scoped, landlock.ScopeNames[:])
	}
	if rs.HandledFS&landlock.FSRefer == 0 {
		text += "; files can't be renamed or linked from one directory to another on this kernel"
	}
	return text
}
