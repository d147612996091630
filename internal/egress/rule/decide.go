package rule

import (
	"net/netip"
	"slices"
	"strings"
)

// Reason says why something is refused. The list is closed: no others are added without a
// change of what zsbx prints and of its JSON.
type Reason string

const (
	Host     Reason = "host"      // the name is in no rule
	Port     Reason = "port"      // the host is allowed on other ports
	Denied   Reason = "denied"    // a denial outranks the rule
	Numeric  Reason = "numeric"   // an address that is in no rule and was not handed out for a name
	Loopback Reason = "loopback"  // a server of this machine that the session did not start
	Private  Reason = "private"   // the name is allowed, its address isn't public
	SNI      Reason = "sni"       // the ClientHello names another server
	NoSNI    Reason = "no-sni"    // the ClientHello names none
	NotTLS   Reason = "not-tls"   // TLS is allowed, and something else came
	HTTPHost Reason = "http-host" // an HTTP request is for another host
	HTTPBad  Reason = "http"      // HTTP is allowed, and what came is none, or can be read in two ways
	ECH      Reason = "ech"       // the ClientHello hides the name
	Upstream Reason = "upstream"  // it is allowed, and could not be reached
	Limit    Reason = "limit"     // it is allowed, and too much is open
)

// Ask is what is asked for.
type Ask struct {
	Names []string   // the name, or those that the address was handed out for
	Addr  netip.Addr // invalid if only the name counts: no real address is known
	Port  uint16     // 0: any port
	Seen  *Seen      // what the client has sent; nil if nothing was read yet
}

// Seen is what was read from the client's side of a connection.
type Seen struct {
	Kind  Kind   // TLS, HTTP, or TCP for anything else
	Name  string // the server name or the host; "" if there is none
	ECH   bool   // a ClientHello with an encrypted one in it
	Fault string // what is wrong with it; "" if it could be read
}

// Target is the question for a host that somebody wrote: an address or a name.
func Target(host string, port uint16) Ask {
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if err != nil {
		return Ask{Names: []string{host}, Port: port}
	}
	return Ask{Addr: a, Port: port}
}

// Verdict is the answer.
type Verdict struct {
	Rule   *Rule    // the rule that allows it; nil if it is refused
	Names  []string // those of the names asked for that are allowed; nil for an address
	Reason Reason   // why it is refused; "" if it is allowed
	Host   string   // what it is about: a name in lower case, or an address
	Port   uint16
	Text   string // why it is refused, as a sentence for the user
	Flag   string // what to type to have it allowed; "" if nothing would
	Wanted *Rule  // the rule in Flag; nil if there is none
	Denial *Rule  // what denies it; nil if no denial does

	rules []*Rule // of Names
	looks bool    // see Looks
}

// Allowed reports whether it is allowed.
func (v *Verdict) Allowed() bool { return v.Rule != nil }

// Raw reports whether what is sent may be anything, so that the server may be the first to speak.
func (v *Verdict) Raw() bool {
	return slices.ContainsFunc(v.rules, func(r *Rule) bool { return r.Kind == TCP })
}

// ByRaw returns the verdict by the rules that make it Raw, if it is.
func (v Verdict) ByRaw() Verdict {
	if v.Rule.Kind == TCP || !v.Raw() {
		return v
	}
	return v.keep(func(i int) bool { return v.rules[i].Kind == TCP })
}

// Looks reports whether what the client sends first can still have it refused.
func (v *Verdict) Looks() bool { return !v.Rule.Direct() || v.looks }

// Normal returns a name as rules have it: in lower case, without the dot at its end. Letters that are
// not ASCII stay: for a server the Kelvin sign is no k.
func Normal(name string) string {
	b := []byte(strings.TrimSuffix(name, "."))
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return string(b)
}

// Decide says whether something is allowed. An address that a rule has is allowed whatever names
// it has, unless one of them is denied.
func (s *Set) Decide(a Ask) Verdict {
	a.Addr = a.Addr.Unmap().WithZone("")
	if len(a.Names) == 0 {
		return s.address(a)
	}
	d := decision{set: s, ask: a}
	for _, name := range a.Names {
		d.name(Normal(name))
	}
	if r := s.addressRule(a); r != nil && d.refused.Reason != Denied {
		return Verdict{Rule: r, Host: a.Addr.String(), Port: a.Port}
	}
	if len(d.got.Names) > 0 {
		return d.allowed()
	}
	return d.refused
}

// addressRule returns the rule for a numeric address, or nil.
func (s *Set) addressRule(a Ask) *Rule {
	if !a.Addr.IsValid() || s.denies(a.Addr, a.Port) != nil {
		return nil
	}
	return s.allowed.allows(a.Addr, a.Port)
}

// denies returns the denial of an address, or nil.
func (s *Set) denies(a netip.Addr, port uint16) *Rule {
	if r := s.denied.addr(a, port); r != nil {
		return r
	}
	return s.denied.addr(inner(a), port)
}

// address decides about an address that was not handed out for a name.
func (s *Set) address(a Ask) Verdict {
	v := Verdict{Host: a.Addr.String(), Port: a.Port}
	if d := s.denies(a.Addr, a.Port); d != nil {
		return v.deny(d)
	}
	v.Rule = s.allowed.allows(a.Addr, a.Port)
	if v.Rule != nil {
		return v
	}
	if Class(a.Addr) == loopback {
		return v.loopback()
	}
	if s.allowed.allows(a.Addr, 0) != nil {
		return v.port(s.allowed.portsOf(a.Addr))
	}
	return v.numeric()
}

// decision is one look at the names of an address.
type decision struct {
	set     *Set
	ask     Ask
	got     Verdict // names that are allowed, and their rules
	refused Verdict // the refusal that says most
}

// name looks whether one name is allowed.
func (d *decision) name(name string) {
	v := Verdict{Host: name, Port: d.ask.Port}
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		d.local(v)
		return
	}
	if !IsHost(name) { // a label may have any byte, also what ends a host for a proxy
		d.refuse(v.host())
		return
	}
	if den := d.set.denied.name(name, d.ask.Port); den != nil {
		d.refuse(v.deny(den))
		return
	}
	r := d.set.allowed.name(name, d.ask.Port)
	if r == nil {
		d.noRule(v)
		return
	}
	if !d.ask.Addr.IsValid() {
		d.allow(name, r)
		return
	}
	if den := d.set.denies(d.ask.Addr, d.ask.Port); den != nil {
		d.refuse(v.deny(den))
		return
	}
	if word := Class(d.ask.Addr); word != "" && !r.Private {
		d.refuse(v.private(d.ask.Addr, word, r))
		return
	}
	d.allow(name, r)
}

// local decides about this machine's own name.
func (d *decision) local(v Verdict) {
	own := d.set.address(Ask{Addr: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Port: d.ask.Port})
	if own.Allowed() {
		d.allow(v.Host, own.Rule)
		return
	}
	own.Host = v.Host
	d.refuse(own)
}

// noRule refuses a name that has no rule for the port.
func (d *decision) noRule(v Verdict) {
	ports := d.set.allowed.portsFor(v.Host)
	if len(ports) > 0 {
		d.refuse(v.port(ports))
		return
	}
	d.refuse(v.host())
}

func (d *decision) allow(name string, r *Rule) {
	d.got.Names = append(d.got.Names, name)
	d.got.rules = append(d.got.rules, r)
}

// rank has the refusals of names, what is nearest to be allowed last.
var rank = [...]Reason{"", Host, Loopback, Port, Private, Denied}

// refuse keeps the refusal that says most about an address with several names.
func (d *decision) refuse(v Verdict) {
	if slices.Index(rank[:], v.Reason) > slices.Index(rank[:], d.refused.Reason) {
		d.refused = v
	}
}

// allowed returns the verdict for the names that have rules.
func (d *decision) allowed() Verdict {
	v := d.got
	v.Host = v.Names[0]
	v.Port = d.ask.Port
	v.Rule = v.rules[0]
	direct := slices.IndexFunc(v.rules, (*Rule).Direct)
	if direct >= 0 {
		v.Rule = v.rules[direct]
		v.looks = v.Rule.Form == All && d.set.denied.hasNames()
		return d.lookDenied(v)
	}
	if d.ask.Seen == nil {
		return v
	}
	return v.look(d.ask.Seen)
}

// lookDenied refuses what "*" allows if what the client has sent names a host that is denied, or can be read
// in two ways.
func (d *decision) lookDenied(v Verdict) Verdict {
	seen := d.ask.Seen
	if !v.looks || seen == nil {
		return v
	}
	if seen.Fault != "" {
		return v.fault(seen)
	}
	name, _, _ := strings.Cut(seen.Name, ":") // servers may ignore the port of a Host header
	name = Normal(name)
	den := d.set.denied.name(name, d.ask.Port)
	if den == nil {
		return v
	}
	v.Host = name
	return v.deny(den)
}

// look decides by what the client has sent.
func (v Verdict) look(seen *Seen) Verdict {
	v.Rule = nil
	fits := func(r *Rule) bool { return r.Kind == seen.Kind || r.Kind == TCP }
	if !slices.ContainsFunc(v.rules, fits) {
		return v.otherKind(seen)
	}
	if seen.Kind == TCP {
		return v.keep(func(i int) bool { return v.rules[i].Kind == TCP })
	}
	if seen.Fault != "" {
		return v.fault(seen)
	}
	name := Normal(seen.Name)
	named := v.keep(func(i int) bool { return fits(v.rules[i]) && v.Names[i] == name })
	if named.Rule == nil {
		return v.otherName(seen)
	}
	if seen.ECH && !named.Rule.ECH {
		return named.hidden()
	}
	return named
}

// keep returns the verdict with those names that are wanted, allowed by the first of them.
func (v Verdict) keep(wanted func(i int) bool) Verdict {
	out := v
	out.Names = nil
	out.rules = nil
	for i, r := range v.rules {
		if wanted(i) {
			out.Names = append(out.Names, v.Names[i])
			out.rules = append(out.rules, r)
		}
	}
	if len(out.rules) > 0 {
		out.Rule = out.rules[0]
		out.Host = out.Names[0]
	}
	return out
}
