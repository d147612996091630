package enforce

import (
	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/enforce/hosts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// planProxy prepares the way to hosts outside where connections can't be mediated: a proxy.
func (p *Plan) planProxy(h *host.Host, opts Options) {
	switch {
	case p.Policy.Net.Mode != resolve.NetHosts:
	case !p.Caps.Seatbelt:
		p.noHosts = p.Caps.without()
	case opts.NoProxy != "":
		p.noHosts = opts.NoProxy
	default:
		p.readHosts(h, opts)
	}
}

// without says what is missing where nothing limits the network to hosts.
func (c *Caps) without() string {
	if c.OS == "macos" {
		return "Seatbelt is needed: " + orUnknown(c.SeatbeltReason)
	}
	return noLandlock
}

// ByProxy reports whether the command reaches hosts outside by a proxy of zsbx's. The caller listens,
// and calls ForProxy before Confine.
func (p *Plan) ByProxy() bool { return p.Seatbelt != nil && p.hosts != nil }

// Listen begins the proxy of a plan by proxy. Events must not wait.
func (p *Plan) Listen(events egress.Sink) (*hosts.Front, error) {
	return hosts.New(p.hosts, hosts.Most(), events).Listen()
}

// ForProxy says where the session's proxy listens, before Confine. The profile then opens this port and no
// other, and the command's variables name the proxy. zsbx is the path of this program, by which ssh(1)
// reaches the proxy if the policy lets the command execute it.
func (p *Plan) ForProxy(at resolve.Proxy, zsbx string) {
	if zsbx != "" && p.Policy.Allowed(zsbx, policy.Exec).Allowed {
		at.Connect = zsbx
	}
	p.Seatbelt.Proxy = at.Port
	p.Env = p.Policy.EnvByProxy(p.Policy.EnvWith(false), at)
}
