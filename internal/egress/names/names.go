// Package names answers DNS messages for those who may reach some names only. It remembers
// which address it has handed out for which name: with that, a connection to an address is
// one to a name.
//
// Names that are not allowed are never asked upstream. They get an address that no machine
// has, so that the refusal comes at connect, with a port.
package names

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zsbx/zsbx/internal/egress"
	"github.com/zsbx/zsbx/internal/egress/rule"
)

// ErrNotFound is what a Lookup returns, or wraps, if a name does not exist.
var ErrNotFound = errors.New("no such name")

// Lookup asks upstream for all addresses of a name, in lower case and without a dot at its end.
// The time says how long they hold; 0 if it is not known.
type Lookup func(ctx context.Context, name string) ([]netip.Addr, time.Duration, error)

// Entry is a line of hosts(5).
type Entry struct {
	Addr  netip.Addr
	Names []string
}

// Config is what a Resolver works with.
type Config struct {
	Rules     rule.Decider
	Lookup    Lookup
	Hosts     []Entry          // outrank what Lookup says
	Search    []string         // the domains of the search list
	NXDomain  bool             // names that are not allowed don't exist, instead of having an address
	Synthetic bool             // allowed names that Lookup does not find have an address, for a proxy upstream
	Events    egress.Sink      // may be nil
	Now       func() time.Time // nil: time.Now
}

// Resolver answers, and remembers what it has answered.
type Resolver struct {
	Config
	files map[string][]netip.Addr // of Hosts
	real  *table                  // addresses that names have
	fake  *table                  // addresses that no machine has
	cache cache
}

// mostBindings is how many addresses are remembered.
const mostBindings = 16 << 10

// New returns a resolver. The entries of hosts(5) for allowed names are bound from the beginning:
// a C library reads that file itself.
func New(c Config) *Resolver {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Events == nil {
		c.Events = func(egress.Event) {}
	}
	r := &Resolver{
		Config: c,
		files:  map[string][]netip.Addr{},
		real:   newTable(mostBindings),
		fake:   newTable(mostBindings),
		cache:  cache{by: map[string]*cached{}},
	}
	for _, e := range c.Hosts {
		r.entry(e)
	}
	return r
}

// entry takes one line of hosts(5). What it says of this machine's own addresses counts only if
// a rule allows it: a connection to them is not one to that name otherwise.
func (r *Resolver) entry(e Entry) {
	addr := e.Addr.Unmap().WithZone("")
	for _, n := range e.Names {
		name := rule.Normal(n)
		r.files[name] = append(r.files[name], addr)
		v := r.Rules.Decide(rule.Ask{Names: []string{name}})
		if !v.Allowed() {
			continue
		}
		v = r.Rules.Decide(rule.Ask{Names: []string{name}, Addr: addr})
		if v.Allowed() || !addr.IsLoopback() && !addr.IsUnspecified() {
			r.real.bind(addr, name)
			r.real.keep(addr)
		}
	}
}

// Ask returns what a connection to an address asks for: the names that it was handed out for,
// or the address alone.
func (r *Resolver) Ask(addr netip.Addr, port uint16) rule.Ask {
	addr = addr.Unmap().WithZone("")
	if b, ok := r.real.get(addr); ok {
		return rule.Ask{Names: b.names, Addr: addr, Port: port}
	}
	if b, ok := r.fake.get(addr); ok {
		return rule.Ask{Names: b.names, Addr: b.behind, Port: port}
	}
	return rule.Ask{Addr: addr, Port: port}
}

// Addrs returns the real addresses that were handed out for each of some names.
func (r *Resolver) Addrs(names []string) []netip.Addr {
	var common []netip.Addr
	for i, n := range names {
		all := r.real.of(rule.Normal(n))
		if i == 0 {
			common = all
			continue
		}
		common = slices.DeleteFunc(common, func(a netip.Addr) bool { return !slices.Contains(all, a) })
	}
	return common
}

// Found is what a name has.
type Found struct {
	Addrs []netip.Addr
	Err   error // nil, ErrNotFound, or why it is not known
}

// Find returns the addresses of a name, which are bound to it from now on.
func (r *Resolver) Find(ctx context.Context, name string) Found {
	name = rule.Normal(name)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return Found{Addrs: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}}
	}
	v := r.Rules.Decide(rule.Ask{Names: []string{name}})
	if !v.Allowed() {
		return r.denied(name, v)
	}
	all, err := r.lookup(ctx, name)
	var kept []netip.Addr
	var refused rule.Verdict
	var behind netip.Addr
	for _, a := range all {
		a = a.Unmap().WithZone("")
		v := r.Rules.Decide(rule.Ask{Names: []string{name}, Addr: a})
		if v.Allowed() && !synthetic(a) {
			kept = append(kept, a)
		} else if !behind.IsValid() {
			behind = a
			refused = v
		}
	}
	if len(kept) > 0 {
		return r.handOut(name, kept)
	}
	if behind.IsValid() {
		return r.dropped(name, behind, refused)
	}
	if r.Synthetic && err != nil {
		return r.invent(name, netip.Addr{})
	}
	if err != nil && !errors.Is(err, ErrNotFound) && ctx.Err() == nil {
		failed := v.Fail(rule.Upstream, "its name could not be resolved")
		r.Events(egress.Event{Kind: egress.Refused, Verdict: failed, Lookup: true})
	}
	return Found{Err: err}
}

// lookup returns what hosts(5) or upstream says.
func (r *Resolver) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if all := r.files[name]; all != nil {
		return all, nil
	}
	return r.cache.lookup(ctx, r.Lookup, r.Now, name)
}

// handOut binds addresses to a name.
func (r *Resolver) handOut(name string, all []netip.Addr) Found {
	const most = 64
	all = all[:min(len(all), most)]
	for _, a := range all {
		if !r.real.bind(a, name) {
			return Found{Err: errFull}
		}
	}
	return Found{Addrs: all}
}

// errFull is the state in which no address may be forgotten.
var errFull = errors.New("too many addresses are kept")

// dropped answers for a name whose addresses are all refused. With an invented one in their place
// the refusal comes at connect.
func (r *Resolver) dropped(name string, behind netip.Addr, v rule.Verdict) Found {
	if r.NXDomain {
		r.Events(egress.Event{Kind: egress.Refused, Verdict: v, Lookup: true})
		return Found{Err: ErrNotFound}
	}
	return r.invent(name, behind)
}

// denied answers for a name that is not allowed.
func (r *Resolver) denied(name string, v rule.Verdict) Found {
	known := strings.Contains(name, ".") && !strings.HasSuffix(name, ".arpa") && rule.IsHost(name)
	if !known || v.Reason == rule.Host && r.searched(name) {
		return Found{Err: ErrNotFound}
	}
	if r.NXDomain {
		r.Events(egress.Event{Kind: egress.Refused, Verdict: v, Lookup: true})
		return Found{Err: ErrNotFound}
	}
	return r.invent(name, netip.Addr{})
}

// searched reports whether a name is what a C library makes of another one with its search
// list: it goes on to the next only if there is no such name.
func (r *Resolver) searched(name string) bool {
	for _, domain := range r.Search {
		domain = rule.Normal(domain)
		if name == domain || domain != "" && strings.HasSuffix(name, "."+domain) {
			return true
		}
	}
	for i := range name {
		if name[i] != '.' {
			continue
		}
		v := r.Rules.Decide(rule.Ask{Names: []string{name[:i]}})
		if v.Allowed() {
			return true
		}
	}
	return false
}
