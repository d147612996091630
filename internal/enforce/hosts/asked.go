package hosts

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/zsbx/zsbx/internal/egress/relay"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// Request is a host that the session wants to connect to and that no rule decides about.
type Request struct {
	Host    string // a name in lower case, or an address
	Port    uint16
	Program string // as it calls itself, and its process id; ready to be printed
}

// Answer says whether a host may be connected to.
type Answer int

const (
	Refuse       Answer = iota // no
	Allow                      // yes, unless its address is private or this machine's
	AllowPrivate               // yes
)

// Asker is asked once about each host and port, and may take long. It may be called by several
// goroutines. After mostAsked questions all others are refused: a command can think of any number of names.
type Asker func(Request) Answer

const mostAsked = 1000

// rules are those of the policy, and what was answered since.
type rules struct {
	ask     Asker
	observe *rule.Observed // decides instead; nil usually
	set     atomic.Pointer[rule.Set]
	mu      sync.Mutex
	answers map[place]*answered
}

// place is a host and a port.
type place struct {
	host string
	port uint16
}

// answered is one question. The answer may be read once done is closed.
type answered struct {
	done   chan struct{}
	answer Answer
}

func newRules(c *Config) *rules {
	r := &rules{ask: c.Asker, answers: map[place]*answered{}}
	r.set.Store(c.Rules)
	if c.Observe {
		r.observe = c.Rules.Observing()
	}
	return r
}

// Decide decides by the rules as they are now.
func (r *rules) Decide(a rule.Ask) rule.Verdict {
	if r.observe != nil {
		return r.observe.Decide(a)
	}
	return r.set.Load().Decide(a)
}

// Asks reports whether somebody is to be asked about what is refused: no denial refuses it, and it could
// be a rule.
func (n *Net) Asks(v *rule.Verdict) bool {
	switch v.Reason {
	case rule.Host, rule.Port, rule.Numeric, rule.Loopback:
		return n.Rules.ask != nil && v.Wanted != nil
	}
	return false
}

// consulting returns what the relay asks about what is refused, or nil.
func (n *Net) consulting() relay.Consult {
	if n.Rules.ask == nil {
		return nil
	}
	return n.consult
}

// consult asks about a host. What is allowed is a rule from then on, and its name has addresses.
func (n *Net) consult(ctx context.Context, t relay.Target, v rule.Verdict) rule.Ask {
	if !n.Asks(&v) || !n.Rules.allows(ctx, &t, &v) || t.Ask.Addr.IsValid() {
		return t.Ask
	}
	found := n.Resolver.Find(ctx, v.Host)
	if len(found.Addrs) == 0 {
		return t.Ask
	}
	ask := t.Ask
	ask.Addr = n.Resolver.Ask(found.Addrs[0], ask.Port).Addr
	return ask
}

// allows waits for the answer about a host, unless there is one.
func (r *rules) allows(ctx context.Context, t *relay.Target, v *rule.Verdict) bool {
	at := place{v.Host, v.Port}
	r.mu.Lock()
	a := r.answers[at]
	if a == nil && len(r.answers) == mostAsked {
		r.mu.Unlock()
		return false
	}
	if a == nil {
		a = &answered{done: make(chan struct{})}
		r.answers[at] = a
		request := Request{Host: v.Host, Port: v.Port, Program: rule.Printable(t.Program())}
		go r.answer(a, request, *v)
	}
	r.mu.Unlock()
	select {
	case <-a.done:
		return a.answer != Refuse
	case <-ctx.Done():
		return false
	}
}

// answer asks, and makes a rule of the answer.
func (r *rules) answer(a *answered, request Request, v rule.Verdict) {
	defer close(a.done)
	a.answer = r.ask(request)
	wanted := v.Wanted
	named := wanted.Form == rule.Exact
	public := wanted.Form == rule.Prefix && rule.Class(wanted.Prefix.Addr()) == ""
	if a.answer != AllowPrivate && (a.answer != Allow || !named && !public) {
		a.answer = Refuse
		return
	}
	granted := *wanted
	granted.Private = named && a.answer == AllowPrivate
	r.mu.Lock()
	defer r.mu.Unlock()
	r.set.Store(r.set.Load().With(granted))
}
