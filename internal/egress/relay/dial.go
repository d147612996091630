package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/zsbx/zsbx/internal/egress/rule"
)

// connect connects upstream, by a proxy if there is one for the host.
func (r *Relay) connect(ctx context.Context, up *Up, a rule.Ask, v rule.Verdict) error {
	p := r.Proxies.For(v)
	if p == nil {
		conn, err := r.race(ctx, r.addresses(a, v))
		up.Conn = conn
		return err
	}
	conn, err := r.Dialer(ctx, p.address)
	if err != nil {
		return fmt.Errorf("the proxy %s: %w", p.address, cause(err))
	}
	up.Conn = conn
	up.name = v.Host
	if v.Rule.Kind == rule.HTTP {
		up.proxy = p
		return nil
	}
	err = p.tunnel(ctx, conn, net.JoinHostPort(v.Host, strconv.Itoa(int(v.Port))))
	if err != nil {
		conn.Close()
	}
	return err
}

// addresses returns where a target may be reached: the address that was asked for, then the others
// of all its names that the rules allow.
func (r *Relay) addresses(a rule.Ask, v rule.Verdict) (all []netip.AddrPort) {
	if a.Addr.IsValid() {
		all = append(all, netip.AddrPortFrom(a.Addr.Unmap(), a.Port))
	}
	if v.Names == nil {
		return all
	}
	for _, addr := range r.Addrs(v.Names) {
		to := netip.AddrPortFrom(addr.Unmap(), a.Port)
		other := r.Rules.Decide(rule.Ask{Names: v.Names, Addr: addr, Port: a.Port})
		if other.Allowed() && !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	return all
}

// errNoAddress is the state of a name that only a proxy could reach.
var errNoAddress = errors.New("the name has no address")

// dialed is the end of one attempt.
type dialed struct {
	conn net.Conn
	err  error
	n    int
}

// race connects to the first address that answers. The next one is tried after a while, or once
// one has failed. The error is that of the first address.
func (r *Relay) race(ctx context.Context, all []netip.AddrPort) (net.Conn, error) {
	switch len(all) {
	case 0:
		return nil, errNoAddress
	case 1:
		return r.Dialer(ctx, all[0].String())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan dialed, len(all))
	var first error
	started := 0
	start := func() {
		if started == len(all) {
			return
		}
		n := started
		started++
		go func() {
			conn, err := r.Dialer(ctx, all[n].String())
			done <- dialed{conn, err, n}
		}()
	}
	start()
	next := time.NewTicker(r.Times.Next)
	defer next.Stop()
	for ended := 0; ended < len(all); {
		select {
		case <-ctx.Done():
			go discard(done, started-ended)
			return nil, ctx.Err()
		case <-next.C:
			start()
		case d := <-done:
			ended++
			if d.err == nil {
				go discard(done, started-ended)
				return d.conn, nil
			}
			if d.n == 0 {
				first = d.err
			}
			start()
		}
	}
	return nil, first
}

// discard closes the connections of attempts that came too late.
func discard(done chan dialed, n int) {
	for range n {
		d := <-done
		if d.err == nil {
			d.conn.Close()
		}
	}
}

// reason writes why upstream can't be reached.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it does not answer"
	}
	return "it can't be reached: " + rule.Printable(cause(err).Error())
}

// cause returns an error without where to it was.
func cause(err error) error {
	op, ok := err.(*net.OpError)
	if ok && op.Err != nil {
		return op.Err
	}
	return err
}
