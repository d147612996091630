package enforce

import (
	"slices"

	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// mediatesSockets reports whether sockets are mediated: where it can be done and
// Landlock, which checks them at no cost from ABI 9 on, does not.
func (c *Caps) mediatesSockets() bool {
	return c.Seccomp && c.SeccompNotify && landlock.Of(c.Landlock).FS&landlock.FSResolveUnix == 0
}

// Mediates reports whether a policy leaves a supervisor anything to decide. Where
// every socket by path is allowed and Landlock checks the abstract names and
// the ports, nothing; then datagram sockets can be had as well.
func (c *Caps) Mediates(net policy.ResolvedNet) bool {
	open := allowsAllPaths(net) && net.Mode != policy.NetPorts && landlock.Of(c.Landlock).Scoped&landlock.ScopeAbstractUnix != 0
	return c.mediatesSockets() && !open
}

// asksNames reports whether a command has to find out addresses: it may connect to
// ports, of whatever host.
func asksNames(net policy.ResolvedNet) bool {
	return net.Mode == policy.NetPorts && len(net.ConnectTCP) > 0
}

// NamesHint is what to type where names can't be resolved: glibc then asks by TCP.
const NamesHint = "--connect-tcp 53 --env RES_OPTIONS=use-vc"

// Unnamed says why the command can't ask name servers though it may connect to ports,
// or "". Who allows port 53 has seen to it.
func (p *Plan) Unnamed() string {
	switch {
	case p.Policy.OS != "linux" || !asksNames(p.Policy.Net) || policy.Lists(p.Policy.Net.ConnectTCP, 53):
		return ""
	case len(p.names) == 0:
		return "/etc/resolv.conf names no server"
	case p.Mediation.Mediates():
		return ""
	}
	return "UDP is closed, and zsbx can't ask for the command: " + orUnknown(p.Caps.SeccompNotifyReason)
}

// allowsAllPaths reports whether every socket by path is allowed: --unix /.
func allowsAllPaths(net policy.ResolvedNet) bool {
	return slices.ContainsFunc(net.Unix, func(p policy.Path) bool { return p.Path == "/" })
}

// SocketsBy names who checks sockets.
func (c *Caps) SocketsBy() string {
	if c.mediatesSockets() {
		return "zsbx"
	}
	return "Landlock"
}

// planMediation says what the supervisor will answer.
func (p *Plan) planMediation(peers bool, signals seccomp.SignalMode) {
	if p.Seccomp == nil || !peers && signals == seccomp.SignalsKernel && p.watched == nil {
		return
	}
	m := &broker.Policy{Net: p.Policy.Net, Peers: peers, Signals: signals, Names: p.names}
	if p.Mounts == nil || !p.Mounts.UserNS {
		m.Capabilities = p.Caps.Capabilities &^ p.DropCapabilities
	}
	p.Mediation = m
}

// orSupervisor says why zsbx can't take the place of Landlock for sockets.
func (p *Plan) orSupervisor() string {
	if p.Caps.SeccompNotifyReason == "" {
		return ""
	}
	return ", or seccomp with a supervisor: " + p.Caps.SeccompNotifyReason
}

// SignalMode is what a supervisor has to answer on a machine.
func (c *Caps) SignalMode() seccomp.SignalMode {
	switch {
	case !c.Seccomp || !c.SeccompNotify:
		return seccomp.SignalsKernel
	case landlock.Of(c.Landlock).Scoped&landlock.ScopeSignal == 0:
		return seccomp.SignalsAll
	}
	return seccomp.SignalsExist
}

// signalLayer is what a plan says about signals, for people.
func (p *Plan) signalLayer() Layer {
	const scope = "Landlock's scope: to the session's own processes only"
	mode := seccomp.SignalsKernel
	if p.Mediation != nil {
		mode = p.Mediation.Signals
	}
	switch {
	case mode == seccomp.SignalsAll:
		return Layer{"signals", "sent by zsbx, to the session's own processes only; signal 0 is answered truthfully, so lock files work"}
	case mode == seccomp.SignalsExist:
		return Layer{"signals", scope + "; zsbx answers signal 0 to processes outside, so lock files work"}
	case p.privatePids():
		return Layer{"signals", "a PID namespace: no process outside has a number; a lock file whose owner runs outside is taken for stale"}
	}
	return Layer{"signals", scope + "; a lock file whose owner runs outside may be taken for stale"}
}
