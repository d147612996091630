package enforce

import (
	"slices"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/resolve"
)

// brokerChecksSockets reports whether the broker checks sockets. It does if it can and Landlock
// does not. From ABI 9 on Landlock checks sockets at no cost.
func (c *Caps) brokerChecksSockets() bool {
	return c.Seccomp && c.SeccompNotify && landlock.Of(c.Landlock).FS&landlock.FSResolveUnix == 0
}

// NeedsBroker reports whether a policy leaves the broker anything to decide about sockets. It
// leaves nothing if every socket by path is allowed and Landlock checks abstract names and ports.
// Then datagram sockets work, too.
func (c *Caps) NeedsBroker(net resolve.ResolvedNet) bool {
	scopes := landlock.Of(c.Landlock).Scoped&landlock.ScopeAbstractUnix != 0
	open := allowsAllPaths(net) && net.Mode != resolve.NetPorts && scopes
	return c.brokerChecksSockets() && !open
}

// asksNames reports whether a command has to look up addresses, since it may connect to ports
// of any host.
func asksNames(net resolve.ResolvedNet) bool {
	return net.Mode == resolve.NetPorts && len(net.ConnectTCP) > 0
}

// namesHint is what to type if names can't be resolved. It makes glibc ask by TCP.
const namesHint = "--connect-tcp 53 --env RES_OPTIONS=use-vc"

// unnamed returns why the command can't ask name servers although it may connect to ports, or
// "". If the policy allows port 53, names can be asked by TCP.
func (p *Plan) unnamed() string {
	switch {
	case p.Policy.OS != "linux" || !asksNames(p.Policy.Net) || resolve.Lists(p.Policy.Net.ConnectTCP, 53):
		return ""
	case len(p.names) == 0:
		return "no server is known from /etc/resolv.conf"
	case p.Broker.ChecksSockets():
		return ""
	}
	return "UDP is closed, and zsbx can't ask for the command: " + orUnknown(p.Caps.SeccompNotifyReason)
}

// allowsAllPaths reports whether every socket by path is allowed: --unix /.
func allowsAllPaths(net resolve.ResolvedNet) bool {
	return slices.ContainsFunc(net.Unix, func(p resolve.Path) bool { return p.Path == "/" })
}

// SocketsBy returns what checks sockets.
func (c *Caps) SocketsBy() string {
	if c.brokerChecksSockets() {
		return "zsbx"
	}
	return "Landlock"
}

// orSupervisor returns why the broker can't replace Landlock, for the end of a sentence, or "".
func (p *Plan) orSupervisor() string {
	if p.Caps.SeccompNotifyReason == "" {
		return ""
	}
	return ", or seccomp with a broker: " + p.Caps.SeccompNotifyReason
}

// SignalMode returns which signals the broker has to answer on a machine.
func (c *Caps) SignalMode() seccomp.SignalMode {
	switch {
	case !c.Seccomp || !c.SeccompNotify:
		return seccomp.SignalsKernel
	case landlock.Of(c.Landlock).Scoped&landlock.ScopeSignal == 0:
		return seccomp.SignalsAll
	}
	return seccomp.SignalsExist
}

// signalLayer returns what a plan says about signals, for people.
func (p *Plan) signalLayer() Layer {
	const scope = "Landlock's scope: to the session's own processes only"
	text := scope + "; a lock file whose owner runs outside may be taken for stale"
	switch {
	case p.signals == seccomp.SignalsAll:
		text = "sent by zsbx, to the session's own processes only; " +
			"signal 0 is answered truthfully, so lock files work"
	case p.signals == seccomp.SignalsExist:
		text = scope + "; zsbx answers signal 0 to processes outside, so lock files work"
	case p.privatePids():
		text = "a PID namespace: no process outside has a number; " +
			"a lock file whose owner runs outside is taken for stale"
	}
	return Layer{"signals", text}
}
