package answer

import (
	"slices"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/resolve"
)

// connect answers for connect(2).
func (w *World) connect(a *Act) Answer {
	if a.Path != "" {
		return w.connectPath(a)
	}
	if a.Name != "" {
		return w.connectAbstract()
	}
	if w.Broker != nil && w.Broker.Hosts != nil {
		return w.connectHost(a)
	}
	ans := w.port(a.Port, landlock.NetConnectTCP)
	if ans.By != Seccomp && w.Broker.ChecksSockets() && w.closedPort(a.Port) {
		return refused(Broker, "EACCES", "")
	}
	return ans
}

// connectHost answers if hosts outside are reached by name. The session's own servers can't be
// distinguished from others on this machine.
func (w *World) connectHost(a *Act) Answer {
	ask := rule.Target(a.Host, a.Port)
	named := len(ask.Names) > 0
	hosts := &w.Broker.Net.Hosts
	got := hosts.Rules.Decide(ask)
	switch {
	case a.Host == "":
		return Answer{Verdict: Undecided, By: Broker}
	case got.Allowed():
		return allowed()
	case named && hosts.NXDomain:
		return refused(Broker, "EAI_NONAME", "") // getaddrinfo(3)
	}
	return refused(Broker, "EACCES", "")
}

// connectPath answers for a Unix socket by path. It can't distinguish the session's sockets
// from others.
func (w *World) connectPath(a *Act) Answer {
	if ans, hidden := w.hidden(a, a.Path); hidden {
		return ans
	}
	if !w.Broker.ChecksSockets() {
		return w.need(a.Path, landlock.FSResolveUnix)
	}
	for i := range w.Broker.Net.Unix {
		if w.Broker.Net.Unix[i].Covers(a.Path) {
			return allowed()
		}
	}
	return refused(Broker, "EACCES", a.Path)
}

// connectAbstract answers for an abstract Unix socket of another session.
func (w *World) connectAbstract() Answer {
	switch {
	case w.Broker.ChecksSockets():
		return refused(Broker, "ECONNREFUSED", "")
	case w.scoped(landlock.ScopeAbstractUnix):
		return refused(Landlock, "EPERM", "")
	}
	return allowed()
}

// closedPort reports whether the broker refuses to connect to a TCP port.
func (w *World) closedPort(port uint16) bool {
	n := &w.Broker.Net
	return n.OwnOnly() || n.Mode == resolve.NetPorts && !resolve.Lists(n.ConnectTCP, port)
}

// port answers for a TCP port. The filter must first allow the socket.
func (w *World) port(port uint16, right uint64) Answer {
	ans := w.call(&Act{Op: Call, Name: "socket", Args: [6]uint64{seccomp.AfInet, seccomp.SockStream, 0}})
	switch {
	case ans.Verdict == Refused:
		return ans
	case w.Broker != nil && w.Broker.Own && right == landlock.NetBindTCP: // by the broker, in the session's network
		return allowed()
	case w.Landlock != nil && w.Landlock.HandledNet&right != 0 && w.ports[port]&right == 0:
		return refused(Landlock, "EACCES", "")
	}
	return allowed()
}

// process answers for signals and ptrace(2).
func (w *World) process(a *Act) Answer {
	switch {
	case a.Op == Signal && w.Broker != nil && w.Broker.Signals == seccomp.SignalsAll:
		return refused(Broker, "EPERM", "")
	case a.Op == Trace && w.Landlock != nil, a.Op == Signal && w.scoped(landlock.ScopeSignal):
		return refused(Landlock, "EPERM", "")
	}
	return allowed()
}

func (w *World) scoped(scope uint64) bool {
	return w.Landlock != nil && w.Landlock.Scoped&scope != 0
}

// call answers for a system call as the filter does.
func (w *World) call(a *Act) Answer {
	if w.Filter == nil {
		return allowed()
	}
	switch got := w.Filter.Answer(a.Name, a.Args); got {
	case "allowed", "success, without effect":
		return allowed()
	case "decided by the broker":
		if a.Name == "socketpair" {
			return allowed()
		}
		return Answer{Verdict: Undecided, By: Broker}
	default:
		return w.RefusedCall(a.Name, got)
	}
}

// RefusedCall returns the answer for a system call that a rule of the filter refuses with
// errno. The filter or the broker may give that answer.
func (w *World) RefusedCall(name, errno string) Answer {
	ans := refused(Seccomp, errno, "")
	for _, d := range w.Filter.Decisions() {
		if slices.Contains(d.Calls, name) {
			ans.Why = d.Why
		}
	}
	return ans
}
