package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/hello"
	"github.com/zsbx/zsbx/internal/egress/http1"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// conn is one client's connection.
type conn struct {
	relay    *Relay
	client   net.Conn
	target   Target
	ctx      context.Context
	cancel   func()
	mu       sync.Mutex   // for what is changed by serve and read by others
	verdict  rule.Verdict // by which it is passed on
	up       *Up
	broken   bool   // it was refused after it was made
	begun    bool   // what comes from up is passed on
	head     []byte // what was read from the client, and not looked at
	sent     atomic.Int64
	received atomic.Int64
	passed   atomic.Bool // all that the client has sent is passed on, and its end
	deaf     atomic.Bool // the client takes nothing any more
	down     sync.WaitGroup
}

// serve passes the connection on. What decides has returned before anything is passed on: the stack
// of an idle connection stays small.
func (c *conn) serve() {
	defer c.close()
	linger(c.client, 0) // until all that upstream has sent is passed on
	next := c.opening()
	if next != nil {
		next()
	}
	c.down.Wait()
	if c.begun {
		c.say(egress.Closed)
	}
}

// opening decides, and returns what passes on what the client sends; nil if nothing does.
func (c *conn) opening() (next func()) {
	v := c.relay.Rules.Decide(c.target.Ask)
	c.is(v) // until somebody has been asked
	v = c.relay.consult(c.ctx, &c.target, v)
	if !v.Allowed() {
		c.refuse(v)
		return nil
	}
	c.is(v)
	raw := v.Raw() || v.Rule.Direct()
	if raw && !c.connect(v.ByRaw()) { // the server may be the first to speak
		return nil
	}
	if !v.Looks() {
		return c.raw
	}
	return c.first(raw)
}

// is says by which verdict the connection is passed on.
func (c *conn) is(v rule.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdict = v
}

// goes says where to it is passed on.
func (c *conn) goes(up *Up) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = up
}

// say says what has happened to the connection.
func (c *conn) say(k egress.Kind) {
	c.mu.Lock()
	e := egress.Event{Kind: k, Verdict: c.verdict, Broken: c.broken}
	c.mu.Unlock()
	if k == egress.Cut || c.relay.Named {
		e.Who = c.target.Program()
	}
	e.Sent = c.sent.Load()
	e.Received = c.received.Load()
	c.relay.Events(e)
}

// connect sees to it that there is a connection upstream, and begins to pass on what comes from there.
func (c *conn) connect(v rule.Verdict) bool {
	c.is(v)
	other := c.up != nil && !c.up.serves(v)
	if c.begun {
		if other {
			c.refuse(v.Fail(rule.Upstream, "a proxy was asked for something else at the address"))
		}
		return !other
	}
	if c.up == nil || other {
		up, err := c.relay.dial(c.ctx, c.target, v)
		if err != nil {
			c.abort()
			return false
		}
		if other {
			c.up.Conn.Close()
			up.place = c.up.place
		}
		c.goes(up)
	}
	c.begun = true
	c.say(egress.Opened)
	c.down.Go(c.receive)
	return true
}

// refuse says why, and resets the connection.
func (c *conn) refuse(v rule.Verdict) {
	c.relay.refuse(c.target, v, nil)
	c.mu.Lock()
	c.broken = true
	c.mu.Unlock()
	c.abort()
}

// full refuses a connection for which there is no place.
func (c *conn) full(why string) {
	v := c.relay.Rules.Decide(c.target.Ask)
	if v.Allowed() {
		v = v.Fail(rule.Limit, why)
	}
	c.refuse(v)
}

// first reads what the client sends first, and decides by it. The client may also leave it at
// listening, if raw bytes are allowed.
func (c *conn) first(raw bool) (next func()) {
	kind, err := c.kind(raw)
	if err == io.EOF && raw {
		return c.raw
	}
	if err != nil {
		c.abort() // nothing was asked for yet: this is no refusal
		return nil
	}
	if kind == rule.HTTP {
		return c.requests
	}
	if kind == rule.TLS {
		return c.tls()
	}
	v := c.decide(rule.Seen{Kind: rule.TCP})
	if !v.Allowed() || !c.connect(v) {
		return nil
	}
	return c.raw
}

// kind reads until it is known what begins.
func (c *conn) kind(raw bool) (rule.Kind, error) {
	buffer := make([]byte, small)
	defer c.client.SetReadDeadline(time.Time{})
	if !raw {
		c.client.SetReadDeadline(time.Now().Add(c.relay.Times.First))
	}
	for {
		n, err := c.client.Read(buffer)
		if len(c.head) == 0 {
			c.client.SetReadDeadline(time.Now().Add(c.relay.Times.Hello))
		}
		c.head = append(c.head, buffer[:n]...)
		kind := begins(c.head, raw)
		if kind == "" && err == io.EOF && len(c.head) > 0 {
			kind = rule.TCP
		}
		if kind != "" {
			return kind, nil
		}
		if err != nil {
			return "", err
		}
	}
}

// begins returns what begins with some bytes, or "" if that is not known yet.
func begins(head []byte, raw bool) rule.Kind {
	tls, known := hello.Begins(head)
	if tls {
		return rule.TLS
	}
	http, also := http1.Begins(head, raw)
	if http {
		return rule.HTTP
	}
	if known && also {
		return rule.TCP
	}
	return ""
}

// Read reads what the client sends, beginning with what was looked at to know its kind.
func (c *conn) Read(b []byte) (int, error) {
	if len(c.head) > 0 {
		n := copy(b, c.head)
		c.head = c.head[n:]
		return n, nil
	}
	return c.client.Read(b)
}

// decide decides by what was seen. A refusal is said, and the connection reset.
func (c *conn) decide(seen rule.Seen) rule.Verdict {
	ask := c.target.Ask
	ask.Seen = &seen
	v := c.relay.Rules.Decide(ask)
	if !v.Allowed() {
		c.refuse(v)
	}
	return v
}

// tls reads a ClientHello, and decides by it.
func (c *conn) tls() (next func()) {
	c.client.SetReadDeadline(time.Now().Add(c.relay.Times.Hello))
	raw, h, err := hello.Read(c)
	c.client.SetReadDeadline(time.Time{})
	v := c.greeted(h, err)
	if !v.Allowed() || !c.connect(v) {
		return nil
	}
	if !c.send(raw) {
		return nil
	}
	after := h.After()
	return func() {
		if c.again(after) {
			c.raw()
		}
	}
}

// greeted decides by a ClientHello, or by what is wrong with it.
func (c *conn) greeted(h hello.Hello, err error) rule.Verdict {
	seen := rule.Seen{Kind: rule.TLS, Name: h.Name, ECH: h.ECH}
	var fault hello.Fault
	if errors.As(err, &fault) {
		seen.Fault = fault.Error()
	} else if err != nil {
		c.abort()
		return rule.Verdict{}
	}
	return c.decide(seen)
}

// again passes on what comes until there can be no second ClientHello, which must be for the same name.
func (c *conn) again(after *hello.After) bool {
	for {
		raw, second, over, err := after.Next(c)
		if second != nil {
			v := c.greeted(*second, err)
			if !v.Allowed() {
				return false
			}
			if v.Host != c.verdict.Host {
				c.refuse(v.Fail(rule.SNI, "a second TLS handshake asks for "+rule.Quote(v.Host)))
				return false
			}
		}
		if !c.send(raw) {
			return false
		}
		if err != nil {
			if err == io.ErrUnexpectedEOF {
				err = io.EOF // the server may make of a part what it likes
			}
			c.ended(err, nil)
			return false
		}
		if over {
			return true
		}
	}
}

// send sends bytes upstream.
func (c *conn) send(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	_, err := counter{c.up, &c.sent}.Write(b)
	return err == nil
}

// raw passes on whatever the client sends.
func (c *conn) raw() {
	if !c.send(c.head) {
		return
	}
	c.head = nil
	c.ended(pass(c.up.Conn, c.client, &c.sent))
}

// ended ends the client's direction as the client did.
func (c *conn) ended(from, to error) {
	if to != nil {
		return // upstream takes nothing: what it has sent still comes
	}
	if from != io.EOF {
		c.abort()
		return
	}
	linger(c.up, -1)
	closeWrite(c.up.Conn)
	c.passed.Store(true)
	if c.deaf.Load() {
		c.up.Close()
	}
}

// receive passes on what comes from upstream.
func (c *conn) receive() {
	from, to := pass(c.client, c.up.Conn, &c.received)
	if from == io.EOF {
		linger(c.client, -1)
		closeWrite(c.client)
		return
	}
	if to == nil {
		c.abort()
		return
	}
	// The client has gone. What it has sent is still passed on: nothing may stop that.
	c.deaf.Store(true)
	if c.passed.Load() {
		c.up.Close()
		return
	}
	io.Copy(io.Discard, c.up.Conn)
}

// requests reads requests of HTTP/1, one after the other.
func (c *conn) requests() {
	in := http1.NewReader(c)
	for n := 0; ; n++ {
		err := in.Wait()
		if err != nil {
			c.ended(err, nil)
			return
		}
		if n == 1 && c.target.Once {
			c.abort() // the server should have ended it: the client will ask again
			return
		}
		if !c.one(in) {
			return
		}
	}
}

// one passes on one request, and reports whether there may be another.
func (c *conn) one(in *http1.Reader) bool {
	c.client.SetReadDeadline(time.Now().Add(c.relay.Times.Hello))
	q, err := in.Next()
	c.client.SetReadDeadline(time.Time{})
	v := c.request(q, err)
	if !v.Allowed() || !c.connect(v) {
		return false
	}
	if c.target.Once {
		q.Drop("connection")
		q.Add("Connection", "close")
	}
	if !c.send(c.up.head(q, v)) {
		return false
	}
	err = in.Body(q, counter{c.up, &c.sent})
	var fault http1.Fault
	if errors.As(err, &fault) {
		c.decide(rule.Seen{Kind: rule.HTTP, Fault: fault.Error()})
		return false
	}
	if err != nil {
		c.abort()
		return false
	}
	return true
}

// request decides about a request, or about what could not be read as one.
func (c *conn) request(q *http1.Request, err error) rule.Verdict {
	seen := rule.Seen{Kind: rule.HTTP}
	var fault http1.Fault
	switch {
	case errors.As(err, &fault):
		seen.Fault = fault.Error()
	case err != nil:
		c.abort()
		return rule.Verdict{}
	case q.Method == "CONNECT":
		seen.Fault = "it asks for a tunnel"
	default:
		seen.Name = hostOf(q.Host, c.target.Ask.Port)
	}
	return c.decide(seen)
}

// hostOf returns a Host header without the port, if that is the one that was connected to.
func hostOf(host string, port uint16) string {
	return strings.TrimSuffix(host, ":"+strconv.Itoa(int(port)))
}

// close closes both sides.
func (c *conn) close() {
	c.client.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.up != nil {
		c.up.Close()
	}
}

// abort resets both sides, and ends a dial.
func (c *conn) abort() {
	c.cancel()
	reset(c.client)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.up != nil {
		reset(c.up)
	}
}
