package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// world is what is outside: servers by the address that a relay dials, and what it has said.
type world struct {
	t       testing.TB
	mu      sync.Mutex
	servers map[string]string // listeners; "" never answers, "refuse" fails
	dialed  []string
	events  []string
	sums    map[string]sum // by the host
	relay   *Relay
}

// sum is what was passed on.
type sum struct{ connections, sent, received int64 }

// newWorld has a relay with some rules. "private " and "ech " may stand before one.
func newWorld(t testing.TB, rules string, change func(*Config)) *world {
	w := &world{t: t, servers: map[string]string{}, sums: map[string]sum{}}
	var all []rule.Rule
	for text := range strings.SplitSeq(rules, ", ") {
		r, err := rule.Parse(text, rule.Marks{})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	c := Config{Rules: rule.NewSet(all, nil), Dialer: w.dial, Events: w.event}
	if change != nil {
		change(&c)
	}
	w.relay = New(c)
	return w
}

func (w *world) event(e egress.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := string(e.Kind)
	if e.Verdict.Reason != "" {
		text += " " + string(e.Verdict.Reason)
	}
	w.events = append(w.events, text+" "+e.Verdict.Line(e.Who))
	if e.Kind == egress.Closed {
		s := w.sums[e.Verdict.Host]
		w.sums[e.Verdict.Host] = sum{s.connections + 1, s.sent + e.Sent, s.received + e.Received}
	}
}

// forget forgets what was said and dialed.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = nil
	w.dialed = nil
}

// said returns the events so far that contain a text.
func (w *world) said(part string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, e := range w.events {
		if strings.Contains(e, part) {
			all = append(all, e)
		}
	}
	return strings.Join(all, "\n")
}

func (w *world) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, address)
	to, ok := w.servers[address]
	w.mu.Unlock()
	if !ok || to == "refuse" {
		return nil, fmt.Errorf("dial %s: refused", address)
	}
	if to == "" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", to)
}

// serve has a server for an address.
func (w *world) serve(address string, handle func(*net.TCPConn)) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Close() })
	w.mu.Lock()
	w.servers[address] = l.Addr().String()
	w.mu.Unlock()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c.(*net.TCPConn))
		}
	}()
}

// pair returns the two ends of a connection.
func pair(t testing.TB) (client, relay *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// target is an address that was handed out for some names.
func target(names, addr string, port uint16) Target {
	a := rule.Ask{Names: strings.Fields(names), Port: port}
	if addr != "" {
		a.Addr = netip.MustParseAddr(addr)
	}
	return Target{Ask: a, Who: func() string { return "test, pid 1" }}
}

// connect returns a client that the relay serves.
func (w *world) connect(t Target) *net.TCPConn {
	client, inner := pair(w.t)
	go w.relay.Serve(inner, t, nil)
	client.SetDeadline(time.Now().Add(10 * time.Second))
	return client
}

// echo sends back what comes, and ends when that ends.
func echo(c *net.TCPConn) {
	io.Copy(c, c)
	c.Close()
}

// eventually waits for something.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 500 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("never: %s", what)
}
