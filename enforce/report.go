package enforce

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/enforce/internal/protect"
	"github.com/zsbx/zsbx/policy"
)

// report compares what was asked for with what the steps of the plan found, and
// names what is not enforced: it is the only maker of Gaps.
type report struct {
	p    *Plan
	opts Options

	set    protect.Set
	cut    deny.Cut
	apart  []protect.Fact
	mounts mounts.Result
}

// add records a gap once.
func (r *report) add(g Gap) {
	if !slices.Contains(r.p.Gaps, g) {
		r.p.Gaps = append(r.p.Gaps, g)
	}
}

// hardening records a missing one that nobody asked for.
func (r *report) hardening(name, promise, why, hint string) {
	r.add(Gap{Name: name, Kind: Hardening, Promise: promise, Why: why, Hint: hint})
}

// tracking names what of the promise to end every descendant is open.
func (r *report) tracking() {
	if r.p.Caps.Orphans {
		r.add(OrphansGap())
	}
}

// linux names all gaps of a plan for Linux.
func (r *report) linux() {
	for _, d := range r.cut.Unheld {
		r.denied(d.Deny, d.Why)
	}
	if r.p.Landlock != nil {
		r.self(append(r.set.SelfFacts, r.apart...))
		r.namespace()
	} else {
		r.withoutLandlock()
	}
	for _, u := range r.set.Unread {
		r.hardening(GapProtect, "no change of what "+u.Config+" includes", u.Why, "")
	}
	r.files()
	r.network()
	r.socket()
	r.process()
	r.tracking()
	r.limits()
	r.private()
}

func (r *report) denied(d policy.DenyPath, why string) {
	if d.Secret {
		r.hardening(GapDeny, "no access to "+d.Pattern, why, "")
		return
	}
	r.add(Gap{Name: GapDeny, Kind: Core, Promise: "no access to " + d.Pattern, Why: why, Origin: d.Deny.Origin})
}

// limits are those that take a control group of the session's own.
func (r *report) limits() {
	why := r.opts.NoLimits
	if why == "" && r.p.Landlock == nil && r.p.Caps.OS != "macos" {
		why = "without Landlock the command could lift them"
	}
	if why == "" {
		return
	}
	for _, l := range r.p.Policy.Limits.All() {
		if promise, ok := map[string]string{
			"memory": "no more memory than %s bytes", "pids": "no more than %s processes and threads", "cpu": "no more processor time than that of %s",
		}[l.Key]; ok && *l.Value > 0 {
			r.add(Gap{Name: GapLimits, Kind: Core, Promise: fmt.Sprintf(promise, l.Text()), Why: why, Origin: *l.From})
		}
	}
}

// private is what the command shares though the policy says otherwise.
func (r *report) private() {
	why, whyHome := r.mounts.Pids, r.mounts.Home
	switch {
	case r.p.Caps.OS == "macos":
		why = "it takes a namespace, which is Linux's"
		whyHome = why
	case r.p.Landlock == nil:
		why = "without Landlock no namespace is made"
		whyHome = why
	}
	if home := r.p.Policy.Private.Home; home.Is() && whyHome != "" {
		r.add(Gap{Name: GapHome, Kind: Core, Promise: "a home directory of the command's own", Why: whyHome, Origin: home.Origin})
	}
	if pids := r.p.Policy.Private.Pids; pids.Is() && why != "" {
		r.add(Gap{Name: GapPids, Kind: Core, Promise: "no sight of processes outside", Why: why, Origin: pids.Origin})
	}
}

// files are the promises about files that can't be kept.
func (r *report) files() {
	p := r.p
	if p.Landlock == nil {
		r.add(Gap{
			Name: GapFiles, Kind: Core,
			Promise: "files are read, written and executed only where allowed",
			Why:     "Landlock (Linux 5.13) is needed: " + orUnknown(p.Caps.LandlockReason),
		})
		for _, d := range p.Policy.Deny {
			r.denied(d, "Landlock is needed")
		}
		return
	}
	if p.Landlock.HandledFS&landlock.FSTruncate == 0 && p.Seccomp == nil {
		r.add(Gap{
			Name: GapTruncate, Kind: Core,
			Promise: "files are emptied only where they may be written",
			Why:     p.needs(3) + ", or seccomp: " + orUnknown(p.Caps.SeccompReason),
		})
	}
}

// network are the promises about the network that can't be kept.
func (r *report) network() {
	p := r.p
	net := p.Policy.Net
	if net.Mode == policy.NetOpen {
		return
	}
	if p.Seccomp == nil {
		r.add(Gap{
			Name: GapNetwork, Kind: Core,
			Promise: "no network but what is allowed",
			Why:     "seccomp is needed to close anything but TCP: " + orUnknown(p.Caps.SeccompReason),
			Hint:    "--net",
			Origin:  net.From,
		})
	}
	if net.Mode != policy.NetPorts || p.Mediation.Mediates() {
		return
	}
	if p.Landlock == nil || p.Landlock.HandledNet&landlock.NetConnectTCP == 0 {
		r.add(Gap{
			Name: GapTCPPorts, Kind: Core,
			Promise: "only these TCP ports: " + portList(net),
			Why:     p.needs(4) + p.orSupervisor(),
			Hint:    "--no-net",
			Origin:  net.From,
		})
	}
	if len(net.BindTCP) > 0 {
		r.add(Gap{
			Name: GapTCPAutobind, Kind: Hardening,
			Promise: "no listening on a TCP port that the kernel chooses",
			Why:     "no kernel refuses listen(2) on an unbound socket, and listening is allowed here",
			Origin:  net.BindTCP[0].Origin,
		})
	}
}

// socket are the ways left to daemons outside.
func (r *report) socket() {
	p := r.p
	if p.Mediation.Mediates() {
		return
	}
	if (p.Landlock == nil || p.Landlock.HandledFS&landlock.FSResolveUnix == 0) && !allowsAllPaths(p.Policy.Net) {
		r.hardening(GapUnixSockets, "no connection to sockets of programs outside, by path", p.needs(9)+p.orSupervisor(), "")
	}
	if p.Landlock == nil || p.Landlock.Scoped&landlock.ScopeAbstractUnix == 0 {
		r.hardening(GapAbstractSockets, "no connection to sockets of programs outside, by abstract name", p.needs(6)+p.orSupervisor(), "")
	}
}

// process are the ways left to processes outside, the terminal and the
// kernel.
func (r *report) process() {
	p := r.p
	if !p.holdsSignals() {
		r.hardening(GapSignals, "no signals to processes outside", p.needs(6)+p.orSupervisor(), "")
	}
	if p.Seccomp != nil {
		return
	}
	why := "seccomp is needed: " + orUnknown(p.Caps.SeccompReason)
	r.hardening(GapPriorities, "no change of limits and priorities of processes outside", why, "")
	r.hardening(GapTerminal, "no typing into the caller's terminal", why, "")
	r.hardening(GapKernel, "no system calls that builds don't need: io_uring, bpf, perf, keyrings, mounts, user namespaces", why, "")
}

// needs says which Landlock is missing.
func (p *Plan) needs(version int) string {
	need := fmt.Sprintf("Landlock ABI %d (Linux %s) is needed", version, landlock.Of(version).Linux)
	if p.Landlock == nil {
		return need + ": " + orUnknown(p.Caps.LandlockReason)
	}
	return fmt.Sprintf("%s, this kernel has %d", need, p.Caps.Landlock)
}

func orUnknown(reason string) string { return cmp.Or(reason, "not available here") }

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
