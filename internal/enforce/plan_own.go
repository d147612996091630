package enforce

import (
	"cmp"

	"github.com/zsbx/zsbx/internal/enforce/hosts"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// capNetAdmin is CAP_NET_ADMIN, which sets a network device up (capabilities(7)).
const capNetAdmin = 12

// NoOwnNet returns why a command without network has no servers on localhost either, or "". The
// broker answers for the sockets. They are in a network namespace that the keeper makes, with its
// capabilities.
func (c *Caps) NoOwnNet() string {
	if c.Landlock == 0 {
		return noLandlock
	}
	if !c.Seccomp || !c.SeccompNotify {
		return orUnknown(cmp.Or(c.SeccompReason, c.SeccompNotifyReason))
	}
	if c.Privileged && c.Capabilities&(1<<capNetAdmin) == 0 {
		return "CAP_NET_ADMIN is missing"
	}
	if !c.MountNS {
		return orUnknown(c.MountReason)
	}
	return c.NetReason
}

// noOwnNet is NoOwnNet for a plan. An ordinary user's keeper has the capabilities in a user
// namespace, which comes with the mount namespace.
func (p *Plan) noOwnNet() string {
	why := p.Caps.NoOwnNet()
	if why == "" && !p.Caps.Privileged && (p.Mounts == nil || !p.Mounts.UserNS) {
		return "that comes with a mount namespace, and this command needs none"
	}
	return why
}

// ownText says in a plan what localhost is for a command without network, for people.
func (p *Plan) ownText() string {
	if p.own {
		return "servers of the session only, by TCP and UDP, in a network namespace made for its first internet socket"
	}
	return "closed, for servers of the session too: " + p.noOwnNet()
}

// noShared returns why a command can't reach hosts outside although its session has no network of its
// own, or "". Its TCP sockets are then in the machine's network, where Landlock refuses it to connect
// them, and the broker does.
func (p *Plan) noShared() string {
	switch {
	case !p.Caps.Seccomp || !p.Caps.SeccompNotify:
		return "a broker is needed: " + p.noOwnNet()
	case p.Landlock.HandledNet&landlock.NetConnectTCP == 0:
		return p.noOwnNet() + "; without that " + p.needs(4)
	}
	return ""
}

// shared reports whether the command reaches hosts outside with sockets of the machine's network.
func (p *Plan) shared() bool { return p.hosts != nil && !p.own && !p.ByProxy() }

// planHosts prepares the way to hosts outside, which begins in the session's network if there is one.
func (p *Plan) planHosts(h *host.Host, opts Options) {
	if p.Policy.Net.Mode != resolve.NetHosts {
		return
	}
	if !p.own {
		p.noHosts = p.noShared()
	}
	if p.noHosts != "" {
		return
	}
	p.readHosts(h, opts)
}

// readHosts prepares what answers for names, and what dials.
func (p *Plan) readHosts(h *host.Host, opts Options) {
	c, err := hosts.Read(&p.Policy.Net.Hosts, h)
	if err != nil {
		p.noHosts = err.Error()
		return
	}
	c.Asker = opts.AskHost
	c.Observe = opts.ObserveHosts
	p.hosts = c
}

// hostsText says in a plan how hosts outside are reached, for people.
func (p *Plan) hostsText() string {
	const reached = "reached by name, through zsbx, which answers for every name server"
	switch {
	case p.ByProxy():
		return "reached by name, by proxy: programs that do not use the proxy variables reach nothing"
	case p.shared():
		return reached + "; UDP sockets are pairs of Unix sockets, so that musl and c-ares resolve no names"
	case p.hosts != nil:
		return reached
	}
	return "not reached: " + cmp.Or(p.noHosts, p.Caps.without())
}

// tagNet marks the steps that try a network namespace.
const tagNet fork.Tag = "network namespace"

// ReachesHosts reports whether the command reaches hosts outside by their names, through zsbx.
func (p *Plan) ReachesHosts() bool { return p.hosts != nil }
