package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress/proxy"
	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/resolve"
)

// Most returns how many connections a session may have at a time: a quarter of this process's
// descriptors, of which each takes two, and no more than 4096.
func Most() int {
	const most = 4096
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	if err != nil {
		return most
	}
	return int(min(limit.Cur/4, most))
}

// Front is a session's proxy, on localhost, for systems on which connections can't be mediated. Whoever
// connects to it needs its password.
type Front struct {
	At       resolve.Proxy
	net      *Net
	front    proxy.Front
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
}

// Listen begins a proxy. It answers once Serve is called.
func (n *Net) Listen() (*Front, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the session's proxy: %w", err)
	}
	f := &Front{net: n, listener: l}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.At.Port = uint16(l.Addr().(*net.TCPAddr).Port)
	f.At.User = proxy.User
	f.At.Password = proxy.Password()
	f.front = proxy.Front{Names: n.Resolver, Relay: n.Relay, Password: f.At.Password, Most: n.Relay.Most}
	return f, nil
}

// Serve serves the session until Close. The error says why it can't go on.
func (f *Front) Serve() error {
	err := f.front.Serve(f.ctx, f.listener)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Close ends the proxy. With drain it waits until the relay has passed on what the session has sent. What
// is left is reset. Nothing of the session may be left: another program can have the port from now on.
func (f *Front) Close(drain bool) {
	if f == nil {
		return
	}
	f.listener.Close()
	if !drain {
		f.cancel()
	}
	f.net.Relay.Drain(f.ctx)
	f.cancel()
}

// Through connects to a host by the proxy that a session's variables name. to is "HOST:PORT".
func Through(ctx context.Context, env []string, to string) (net.Conn, error) {
	named := relay.Variables{HTTPSProxy: proxyVariables(env).HTTPSProxy}
	all, err := relay.ParseProxies(named)
	if err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errors.New("https_proxy names no proxy")
	}
	return all.Tunnel(ctx, dial, to)
}
