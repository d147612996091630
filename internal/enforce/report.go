package enforce

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/deny"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/policy"
)

// report compares what was asked for with the results of the plan's steps, and adds a Gap for
// what is not enforced. Nothing else makes Gaps.
type report struct {
	p    *Plan
	opts Options

	set    protect.Set
	cut    deny.Cut
	taken  []protect.Fact // the result of taking zsbx's own files out of the trees
	mounts mounts.Result
}

func (r *report) add(g Gap) {
	if !slices.Contains(r.p.Gaps, g) {
		r.p.Gaps = append(r.p.Gaps, g)
	}
}

// core adds a gap for a promise that a rule asked for. If the machine's owner can close it, the
// hint says how.
func (r *report) core(name, promise, why string, from policy.Origin) {
	g := Gap{Name: name, Kind: Core, Promise: promise, Why: why, Origin: from}
	if c := &r.p.Caps; c.MountHint != "" && strings.HasSuffix(why, c.MountReason) {
		g.Hint = c.MountHint
	}
	r.add(g)
}

// hardening adds a gap for a promise that is made by default.
func (r *report) hardening(name, promise, why, hint string) {
	r.add(Gap{Name: name, Kind: Hardening, Promise: promise, Why: why, Hint: hint})
}

// linux adds all gaps of a plan for Linux.
func (r *report) linux() {
	for _, d := range r.cut.Unenforced {
		r.denied(d.Deny, d.Why, d.In)
	}
	r.p.denied = r.cut.Denied
	r.p.open = r.cut.Open
	if r.p.Landlock != nil {
		r.zsbxFiles(append(r.set.ZsbxFacts, r.taken...))
	}
	r.namespace()
	r.facts(r.set.Facts)
	r.files()
	r.network()
	r.socket()
	r.process()
	r.everywhere()
}

// everywhere adds the gaps that all systems can have.
func (r *report) everywhere() {
	if r.p.Caps.Orphans {
		r.add(OrphansGap())
	}
	r.limits()
	r.private()
}

// denied adds a gap for a denial. If all that it denies is in a directory, the hint closes that
// directory, which keeps the promise.
func (r *report) denied(d resolve.DenyPath, why, in string) {
	promise := "no access to " + d.Pattern
	switch {
	case in != "":
		kind := Core
		if d.Secret {
			kind = Hardening
		}
		hint := "--deny " + shell.QuotePath(glob.QuoteMeta(r.p.Policy.Short(in)))
		r.add(Gap{Name: GapDeny, Kind: kind, Promise: promise, Why: why, Hint: hint, Origin: d.Deny.Origin})
	case d.Secret:
		r.hardening(GapDeny, promise, why, "")
	default:
		r.core(GapDeny, promise, why, d.Deny.Origin)
	}
}

// limits adds gaps for the limits that need a control group.
func (r *report) limits() {
	why := r.opts.NoLimits
	if why == "" && r.p.Landlock == nil && r.p.Caps.OS != "macos" {
		why = "without Landlock the command could lift them"
	}
	for _, l := range r.p.Policy.Limits.All() {
		if why != "" && l.Name != "timeout" && l.Name != "max_output" {
			r.core(GapLimits, l.Name+": at most "+l.Value, why, l.Origin)
		}
	}
}

// private adds gaps for what the command shares although the policy says otherwise.
func (r *report) private() {
	private := r.p.Policy.Private
	if private.Home.Is() && r.mounts.Home != "" {
		r.core(GapHome, "a private home directory", r.mounts.Home, private.Home.Origin)
	}
	if r.p.Policy.Tries() && r.mounts.Try != "" {
		r.core(GapTry, "what is written becomes real only when it is applied", r.mounts.Try, r.p.Policy.Writes.Origin)
	}
	if private.Pids.Is() && r.mounts.Pids != "" {
		r.core(GapPids, "no view of processes outside", r.mounts.Pids, private.Pids.Origin)
	}
}

// zsbxFiles adds gaps for zsbx's own files that the command can change, and for what it may not do
// because they are protected.
func (r *report) zsbxFiles(facts []protect.Fact) {
	for _, f := range facts {
		g := Gap{Name: GapZsbxFiles, Kind: Core, Promise: f.Promise, Why: f.Why, Hint: f.Hint, Origin: f.Origin}
		if f.Closed {
			g.Kind = Hardening
		}
		r.add(g)
	}
}

// facts adds gaps for what can't be protected because it is not known.
func (r *report) facts(facts []protect.Fact) {
	for _, f := range facts {
		r.hardening(GapProtect, f.Promise, f.Why, f.Hint)
	}
}

const noLandlock = "without Landlock no mount namespace is made"

// namespace adds gaps for what is open without a mount namespace, or despite one: the protected
// set, metadata, shared memory, terminals, denials in writable trees.
func (r *report) namespace() {
	p := r.p
	why := r.mounts.None
	hint := ""
	if p.Landlock == nil && len(r.opts.Protect) > 0 {
		r.hardening(GapZsbxFiles, "no change of zsbx's own files", why, "")
	}
	if p.Landlock != nil && !p.Caps.MountNS {
		hint = p.Caps.MountHint
	}
	if p.Mounts == nil && len(r.set.Mounts) > 0 {
		r.hardening(GapProtect, "no change of "+r.set.Summary(), why, hint)
	}
	if u := r.mounts.Unseen; u != nil {
		r.hardening(GapProtect, "no change of "+u.Path+" and more by other names", u.Why.Error(), "")
	}
	if (p.Mounts == nil || r.mounts.Metadata != "") && mounts.WritableTrees(p.Policy.Paths) != nil {
		const promise = "files outside the writable trees keep their mode, owner, times, attributes and flags"
		r.hardening(GapMetadata, promise, cmp.Or(why, r.mounts.Metadata), hint)
	}
	if p.Mounts == nil || r.mounts.IPC != "" {
		const promise = "no shared memory, semaphores and message queues of programs outside"
		r.hardening(GapIPC, promise, cmp.Or(why, r.mounts.IPC), hint)
	}
	if p.Mounts == nil && mounts.OpensTerminals(p.Policy) {
		r.hardening(GapTerminals, "no access to the user's other terminals", why, hint)
	}
	for _, d := range r.cut.Later {
		const why = "what does not exist yet in a writable tree can't be covered; " +
			"it is reported when the command ends"
		r.add(Gap{
			Name:    GapDenyMissing,
			Kind:    Hardening,
			Promise: "nothing new is made under the denied name " + d.Pattern,
			Why:     why,
			Origin:  d.Deny.Origin,
		})
	}
}

const onlyAllowed = "files are read, written and executed only where allowed"

// files adds the gaps about files.
func (r *report) files() {
	p := r.p
	if p.Landlock == nil {
		why := "Landlock (Linux 5.13) is needed: " + orUnknown(p.Caps.LandlockReason)
		r.core(GapFiles, onlyAllowed, why, policy.Origin{})
		for _, d := range p.Policy.Deny {
			r.denied(d, "Landlock is needed", "")
		}
		return
	}
	if p.Landlock.HandledFS&landlock.FSTruncate == 0 && p.Seccomp == nil {
		why := p.needs(3) + ", or seccomp: " + orUnknown(p.Caps.SeccompReason)
		r.core(GapTruncate, "files are emptied only where they may be written", why, policy.Origin{})
	}
}

// network adds the gaps about the network.
func (r *report) network() {
	p := r.p
	net := p.Policy.Net
	if net.Mode == resolve.NetOpen {
		return
	}
	if p.Seccomp == nil {
		r.add(Gap{
			Name:    GapNetwork,
			Kind:    Core,
			Promise: "no network except what is allowed",
			Why:     "seccomp is needed to close anything but TCP: " + orUnknown(p.Caps.SeccompReason),
			Hint:    "--net",
			Origin:  net.From,
		})
	}
	if p.hosts == nil {
		r.hosts(cmp.Or(p.noHosts, p.Caps.without()))
	}
	if net.Mode != resolve.NetPorts || p.Broker.ChecksSockets() {
		return
	}
	if p.Caps.Answered || p.Landlock == nil || p.Landlock.HandledNet&landlock.NetConnectTCP == 0 {
		r.add(Gap{
			Name:    GapTCPPorts,
			Kind:    Core,
			Promise: "only the TCP ports that are listed",
			Why:     p.socketsNeed(4),
			Hint:    "--no-net",
			Origin:  net.From,
		})
	}
	if len(net.BindTCP) > 0 {
		r.add(Gap{
			Name:    GapTCPAutobind,
			Kind:    Hardening,
			Promise: "no listening on a TCP port that the kernel chooses",
			Why:     "no kernel refuses listen(2) on an unbound socket, and listening is allowed here",
			Origin:  net.BindTCP[0].Origin,
		})
	}
}

// hosts adds the gap for hosts that can't be reached by name.
func (r *report) hosts(why string) {
	net := r.p.Policy.Net
	if net.Mode != resolve.NetHosts {
		return
	}
	r.add(Gap{
		Name:    GapHosts,
		Kind:    Core,
		Promise: "the hosts that are listed, and no others, can be reached",
		Why:     why + "; no host can be reached without it",
		Hint:    "--no-net",
		Origin:  net.From,
	})
}

// socket adds gaps for the ways that are left to daemons outside.
func (r *report) socket() {
	p := r.p
	if p.Broker.ChecksSockets() {
		return
	}
	const promise = "no connection to sockets of programs outside, by "
	unchecked := p.Caps.Answered || p.Landlock == nil
	if (unchecked || p.Landlock.HandledFS&landlock.FSResolveUnix == 0) && !allowsAllPaths(p.Policy.Net) {
		r.hardening(GapUnixSockets, promise+"path", p.socketsNeed(9), "")
	}
	if unchecked || p.Landlock.Scoped&landlock.ScopeAbstractUnix == 0 {
		r.hardening(GapAbstractSockets, promise+"abstract name", p.socketsNeed(6), "")
	}
}

// process adds gaps for the ways that are left to processes outside, the terminal and the
// kernel.
func (r *report) process() {
	p := r.p
	if !p.keepsSignals() {
		r.hardening(GapSignals, "no signals to processes outside", p.needs(6)+p.orSupervisor(), "")
	}
	if p.Seccomp != nil {
		return
	}
	why := "seccomp is needed: " + orUnknown(p.Caps.SeccompReason)
	r.hardening(GapPriorities, "no change of limits and priorities of processes outside", why, "")
	r.hardening(GapTerminal, "no typing into the caller's terminal", why, "")
	const kernel = "no system calls that builds don't need: io_uring, bpf, perf, keyrings, mounts, user namespaces"
	r.hardening(GapKernel, kernel, why, "")
}

// socketsNeed returns what Landlock, or the broker in its place, lacks to check connections.
func (p *Plan) socketsNeed(version int) string {
	if p.Caps.Answered {
		return "a supervisor outside, such as an outer zsbx's, may connect for the command, " +
			"and Landlock does not apply to the supervisor"
	}
	return p.needs(version) + p.orSupervisor()
}

func (p *Plan) needs(version int) string {
	need := fmt.Sprintf("Landlock ABI %d (Linux %s) is needed", version, landlock.Of(version).Linux)
	if p.Landlock == nil {
		return need + ": " + orUnknown(p.Caps.LandlockReason)
	}
	return fmt.Sprintf("%s, this kernel has %d", need, p.Caps.Landlock)
}

func orUnknown(reason string) string { return cmp.Or(reason, "not available here") }
