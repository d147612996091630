// Package proxy is the front of a network by name for systems on which connections can't be
// mediated: a proxy by CONNECT, absolute targets and SOCKS5 on this machine. Whoever uses it
// needs the session's password. What it connects goes through the same relay.
package proxy

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/names"
	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// User is the name that belongs to the password.
const User = "zsbx"

// Password makes a password.
func Password() string { return rand.Text() }

// Front is such a proxy.
type Front struct {
	Names    *names.Resolver
	Relay    *relay.Relay
	Password string
	Most     int // clients at once, others wait; 0: 4096
}

// headTime is how long a client may take to say where it wants to.
const headTime = 30 * time.Second

// Serve takes connections until the listener is closed.
func (f *Front) Serve(ctx context.Context, l net.Listener) error {
	most := f.Most
	if most == 0 {
		most = 4096
	}
	places := make(chan struct{}, most)
	for {
		places <- struct{}{}
		c, err := egress.Accept(l)
		if err != nil {
			return err
		}
		go func() {
			defer func() { <-places }()
			f.serve(ctx, c)
		}()
	}
}

// serve speaks with one client. The first byte says in which language.
func (f *Front) serve(ctx context.Context, c net.Conn) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(headTime))
	first := make([]byte, 1)
	if _, err := io.ReadFull(c, first); err != nil {
		return
	}
	if first[0] == socksVersion {
		f.socks(ctx, c)
		return
	}
	f.http(ctx, c, first)
}

// same compares secrets in a time that does not say how much of them is right.
func same(given, wanted string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(wanted)) == 1
}

// basic is the Proxy-Authorization of a client that has the password.
func (f *Front) basic() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(User+":"+f.Password))
}

// open connects to a host. Each error is a *relay.Refusal.
func (f *Front) open(ctx context.Context, c net.Conn, host string, port uint16) (*relay.Up, relay.Target, error) {
	t := relay.Target{Ask: rule.Target(host, port)}
	v := f.Names.Rules.Decide(t.Ask)
	if v.Allowed() && len(t.Ask.Names) > 0 {
		t.Ask.Addr = f.address(ctx, host)
	}
	up, err := f.Relay.Dial(ctx, t)
	c.SetDeadline(time.Now().Add(headTime)) // for the answer
	return up, t, err
}

// address returns the address of a name that the rules are asked about, if there is one. The relay knows
// the others.
func (f *Front) address(ctx context.Context, name string) (none netip.Addr) {
	found := f.Names.Find(ctx, name)
	if len(found.Addrs) == 0 {
		return none
	}
	return f.Names.Ask(found.Addrs[0], 0).Addr
}

// pass hands a client over to the relay.
func (f *Front) pass(c net.Conn, t relay.Target, up *relay.Up) {
	c.SetDeadline(time.Time{})
	f.Relay.Serve(c, t, up)
}

// reasonOf returns why something was refused, and the line that says so.
func reasonOf(err error) (why rule.Reason, line string) {
	var r *relay.Refusal
	if errors.As(err, &r) {
		return r.Verdict.Reason, r.Verdict.Line("")
	}
	return rule.Upstream, ""
}
