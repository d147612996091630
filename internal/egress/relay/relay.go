// Package relay passes connections on to hosts that are allowed. It dials the host, reads
// what the client sends first, and passes bytes on in both directions if that names the
// host. Of HTTP/1 it reads each request.
package relay

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// Dialer makes a TCP connection to "ADDRESS:PORT"; to "NAME:PORT" only if a proxy has a name.
type Dialer func(ctx context.Context, address string) (net.Conn, error)

// Config is what a Relay works with.
type Config struct {
	Rules   rule.Decider
	Dialer  Dialer
	Addrs   func(names []string) []netip.Addr // handed out for each of these names; may be nil
	Proxies *Proxies                          // nil: none
	Events  egress.Sink                       // may be nil
	Consult Consult                           // may be nil
	Times   Times
	Most    int  // connections at once; 0: 4096
	Named   bool // events name the program also if nothing was refused, which takes its time
}

// Consult is asked about what is refused, and may take long. It returns what is decided instead, with
// the rules as they are by then.
type Consult func(ctx context.Context, t Target, v rule.Verdict) rule.Ask

// Times are how long a Relay waits for what. Each has a default.
type Times struct {
	Next  time.Duration // for an address until the next one is tried, too
	Dial  time.Duration // for all addresses of a host
	First time.Duration // for the first byte of a client
	Hello time.Duration // for the rest of a ClientHello or a head
	Quiet time.Duration // while draining, for a byte
	Drain time.Duration // while draining, in all
}

func (t *Times) defaults() {
	set := func(d *time.Duration, usual time.Duration) {
		if *d == 0 {
			*d = usual
		}
	}
	set(&t.Next, 250*time.Millisecond)
	set(&t.Dial, 30*time.Second)
	set(&t.First, 5*time.Minute)
	set(&t.Hello, 30*time.Second)
	set(&t.Quiet, 5*time.Second)
	set(&t.Drain, 30*time.Second)
}

// Relay passes connections on.
type Relay struct {
	Config
	mu    sync.Mutex
	open  int            // connections, and dials
	live  map[*conn]bool // connections that are served
	ended bool           // no more are taken
}

// New returns a relay.
func New(c Config) *Relay {
	c.Times.defaults()
	if c.Most == 0 {
		c.Most = 4096
	}
	if c.Events == nil {
		c.Events = func(egress.Event) {}
	}
	if c.Addrs == nil {
		c.Addrs = func([]string) []netip.Addr { return nil }
	}
	return &Relay{Config: c, live: map[*conn]bool{}}
}

// Target is where a client wants to.
type Target struct {
	Ask  rule.Ask
	Who  func() string // names the program in events; may be nil
	Once bool          // one request of HTTP, after which the server is to end the connection

	Refused func(rule.Verdict) // is told what Events is told of the connection's refusal; may be nil
}

// Program names the program that wants there, as in events.
func (t *Target) Program() string {
	if t.Who == nil {
		return ""
	}
	return t.Who()
}

// Refusal is the error for what is not allowed, or can't be reached.
type Refusal struct {
	Verdict rule.Verdict
	Err     error // of the dialer; may be nil
}

// Error returns the refusal as a line for the user.
func (e *Refusal) Error() string { return e.Verdict.Line("") }

// Unwrap returns the dialer's error.
func (e *Refusal) Unwrap() error { return e.Err }

// Up is a connection to a host that is allowed, or to a proxy.
type Up struct {
	net.Conn
	name  string // that a proxy was asked for; "" without a proxy
	proxy *Proxy // that takes requests with an absolute target; nil: the host or a tunnel to it
	place func() // gives back the place of a connection that is not served
}

// serves reports whether the connection can be used for what a verdict allows. A proxy that takes requests must get
// nothing else, and a tunnel leads to one name.
func (u *Up) serves(v rule.Verdict) bool {
	if u.proxy != nil {
		return v.Rule.Kind == rule.HTTP
	}
	return u.name == "" || u.name == v.Host
}

// Close closes the connection, and makes place for another one.
func (u *Up) Close() error {
	u.place()
	return u.Conn.Close()
}

// take takes the place of one connection, which is given back once. If there is none it says why.
func (r *Relay) take() (release func(), why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil, "the command has ended"
	}
	if r.open >= r.Most {
		return nil, fmt.Sprintf("%d are open", r.open)
	}
	r.open++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.open--
	}), ""
}

// Dial connects to a target. Whoever has a client that waits for its connect calls it before
// Serve. Each error is a *Refusal, and was said as an event unless the context was cancelled.
func (r *Relay) Dial(ctx context.Context, t Target) (*Up, error) {
	v := r.Rules.Decide(t.Ask)
	if !v.Allowed() && r.Consult == nil {
		return nil, r.refuse(t, v, nil)
	}
	release, why := r.take()
	if release == nil {
		return nil, r.refuse(t, v.Fail(rule.Limit, why), nil)
	}
	v = r.consult(ctx, &t, v)
	if !v.Allowed() {
		release()
		return nil, r.refuse(t, v, nil)
	}
	up, err := r.dial(ctx, t, v.ByRaw())
	if err != nil {
		release()
		return nil, err
	}
	up.place = release
	return up, nil
}

// consult asks about what is refused, if somebody is to be asked, which changes the target.
func (r *Relay) consult(ctx context.Context, t *Target, v rule.Verdict) rule.Verdict {
	if v.Allowed() || r.Consult == nil {
		return v
	}
	t.Ask = r.Consult(ctx, *t, v)
	return r.Rules.Decide(t.Ask)
}

// dial connects to a target for which there is a verdict, and a place. If the client has given up
// nothing is said.
func (r *Relay) dial(ctx context.Context, t Target, v rule.Verdict) (*Up, error) {
	patient, cancel := context.WithTimeout(ctx, r.Times.Dial)
	defer cancel()
	up := &Up{place: func() {}}
	err := r.connect(patient, up, t.Ask, v)
	if err == nil {
		linger(up, 0) // until all that the client has sent is passed on
		return up, nil
	}
	failed := v.Fail(rule.Upstream, reason(err))
	if ctx.Err() != nil {
		return nil, &Refusal{failed, err}
	}
	return nil, r.refuse(t, failed, err)
}

// refuse says that something is refused.
func (r *Relay) refuse(t Target, v rule.Verdict, err error) error {
	r.Events(egress.Event{Kind: egress.Refused, Verdict: v, Who: t.Program()})
	if t.Refused != nil {
		t.Refused(v)
	}
	return &Refusal{v, err}
}

// Serve passes on a client's connection until it ends, and closes it. up is what Dial has returned
// for the same target, or nil.
func (r *Relay) Serve(client net.Conn, t Target, up *Up) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := &conn{relay: r, client: client, target: t, up: up, ctx: ctx, cancel: cancel}
	if up == nil {
		release, why := r.take()
		if release == nil {
			c.full(why)
			return
		}
		defer release()
	}
	if !r.begin(c) {
		c.abort()
		return
	}
	c.serve()
	r.end(c)
}

// begin notes a connection, unless no more are taken.
func (r *Relay) begin(c *conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended {
		r.live[c] = true
	}
	return !r.ended
}

// end forgets a connection.
func (r *Relay) end(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, c)
}

// Drain takes no more connections, and waits for those whose clients have ended while bytes are
// passed on. What is left then is reset. It returns how many were.
func (r *Relay) Drain(ctx context.Context) int {
	const look = 20 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, r.Times.Drain)
	defer cancel()
	moved := map[*conn]int64{}
	quiet := map[*conn]time.Duration{}
	for ctx.Err() == nil {
		busy := false
		for _, c := range r.connections() {
			now := c.sent.Load() + c.received.Load()
			quiet[c] += look
			if now != moved[c] {
				moved[c] = now
				quiet[c] = 0
			}
			if c.passed.Load() && quiet[c] >= 3*look {
				c.close() // the kernel sends the rest
			}
			busy = busy || quiet[c] < r.Times.Quiet
		}
		if !busy {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(look):
		}
	}
	return r.cut()
}

// connections returns those that are served. There will be no others.
func (r *Relay) connections() (all []*conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for c := range r.live {
		all = append(all, c)
	}
	return all
}

// cut resets what is left.
func (r *Relay) cut() int {
	n := 0
	for _, c := range r.connections() {
		c.abort()
		if !c.passed.Load() {
			n++
			c.say(egress.Cut)
		}
	}
	return n
}
