package rule

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/shell"
)

// longest is how many bytes of a text that somebody else wrote are printed.
const longest = 80

// Quote writes a text that somebody else wrote: cut, and without what could control a terminal.
func Quote(s string) string {
	if len(s) <= longest {
		return strconv.QuoteToASCII(s)
	}
	return strconv.QuoteToASCII(s[:longest]) + "..."
}

// Printable is Quote without the quotes.
func Printable(s string) string {
	text, cut := strings.CutSuffix(Quote(s), "...")
	text = text[1 : len(text)-1]
	if cut {
		text += "..."
	}
	return text
}

// Where writes the host and the port of a verdict. A host that looks like none is quoted.
func (v *Verdict) Where() string {
	host := v.Host
	a, err := netip.ParseAddr(host)
	switch {
	case err == nil && a.Zone() == "":
		host = hostOf(netip.PrefixFrom(a, a.BitLen()))
	case len(host) > longest || !IsHost(host):
		host = Quote(host)
	}
	if v.Port == 0 {
		return host
	}
	return host + ":" + strconv.Itoa(int(v.Port))
}

// Line writes a refusal as one line: where to, who, why, and what to type. Who may be "".
func (v *Verdict) Line(who string) string {
	line := v.Where()
	if who != "" {
		line += " (" + Printable(who) + ")"
	}
	line += ": " + v.Text
	if v.Flag != "" {
		line += "; to allow: " + v.Flag
	}
	return line
}

// Fail returns a verdict about what is allowed and does not work, for the reasons Upstream and
// Limit. What an upstream said is quoted by whoever calls this.
func (v Verdict) Fail(why Reason, text string) Verdict {
	return v.because(why, text, nil)
}

// because makes a verdict a refusal. wanted is the rule that would allow it, or nil.
func (v Verdict) because(why Reason, text string, wanted *Rule) Verdict {
	v.Rule = nil
	v.Reason = why
	v.Text = text
	v.Wanted = wanted
	v.Flag = wanted.flag()
	return v
}

// flag writes the rule as a flag of zsbx run, or "" for nil.
func (r *Rule) flag() string {
	if r == nil {
		return ""
	}
	name := "--allow-host "
	if r.Private {
		name = "--allow-private-host "
	}
	return name + shell.Quote(r.String())
}

// want returns the rule that allows the verdict's host on its port, or nil if the host is none that a
// rule can have.
func (v Verdict) want(kind Kind) *Rule {
	text := v.Host
	if a, err := netip.ParseAddr(v.Host); err == nil {
		text = hostOf(netip.PrefixFrom(a, a.BitLen()))
	}
	text += ":" + strconv.Itoa(int(max(v.Port, 1)))
	r, err := Parse(text, Marks{})
	if err != nil {
		return nil
	}
	if v.Port == 0 {
		r.Port = defaultPort
		r.Kind = defaultKind(r.Form, r.Port)
	}
	if kind != "" {
		r.Kind = kind
	}
	return &r
}

func (v Verdict) host() Verdict {
	return v.because(Host, "not in [net] hosts", v.want(""))
}

func (v Verdict) numeric() Verdict {
	text := "a numeric address, not in [net] hosts and not that of a name in it"
	wanted := v.want("")
	if wanted != nil && Class(wanted.Prefix.Addr()) == metadata {
		wanted = nil // whoever means that has to know it
	}
	return v.because(Numeric, text, wanted)
}

func (v Verdict) loopback() Verdict {
	local := v
	local.Host = "localhost"
	text := "a server of this machine that the session did not start"
	return v.because(Loopback, text, local.want(""))
}

func (v Verdict) port(ports []uint16) Verdict {
	return v.because(Port, "the host is allowed on "+list(ports)+" only", v.want(""))
}

func (v Verdict) deny(d *Rule) Verdict {
	v.Denial = d
	return v.because(Denied, fmt.Sprintf("denied by %s in [net] deny_hosts", Quote(d.String())), nil)
}

// private refuses a private address of a name that a rule allows. The rule that is wanted differs by the mark
// only: beside another one for the same host and port there can be none with another kind.
func (v Verdict) private(a netip.Addr, word string, r *Rule) Verdict {
	text := fmt.Sprintf("its address %s is %s", a, word)
	asked := v
	asked.Port = cmp.Or(v.Port, r.Port)
	kind := r.Kind
	if r.Direct() {
		kind = "" // "*" is no reason to leave a name unchecked
	}
	wanted := asked.want(kind)
	if wanted != nil {
		wanted.Private = true
	}
	if word == metadata {
		wanted = nil
	}
	return v.because(Private, text, wanted)
}

// otherKind refuses what is no TLS for a rule that means TLS, or no HTTP.
func (v Verdict) otherKind(seen *Seen) Verdict {
	wanted := v.want(seen.Kind)
	if v.rules[0].Kind == TLS {
		return v.because(NotTLS, "the host is allowed for TLS, and this is "+known(seen.Kind), wanted)
	}
	return v.because(HTTPBad, "the host is allowed for HTTP/1, and this is "+known(seen.Kind), wanted)
}

// known names what was recognised.
func known(k Kind) string {
	switch k {
	case TLS:
		return "TLS"
	case HTTP:
		return "HTTP/1"
	}
	return "something else"
}

// fault refuses what can't be read.
func (v Verdict) fault(seen *Seen) Verdict {
	if seen.Kind == TLS {
		return v.because(NotTLS, "the TLS handshake can't be read: "+seen.Fault, nil)
	}
	return v.because(HTTPBad, "the HTTP request is refused: "+seen.Fault, nil)
}

// otherName refuses a ClientHello or a request for another host.
func (v Verdict) otherName(seen *Seen) Verdict {
	if seen.Kind == HTTP {
		return v.because(HTTPHost, "the HTTP request asks for "+Quote(seen.Name), nil)
	}
	if seen.Name != "" {
		return v.because(SNI, "the TLS handshake asks for "+Quote(seen.Name), nil)
	}
	return v.because(NoSNI, "the TLS handshake names no server", nil)
}

func (v Verdict) hidden() Verdict {
	text := "the TLS handshake can hide another name (ECH); only a file can allow it, by ech = true"
	return v.because(ECH, text, nil)
}

// portsFor returns the ports on which a name is allowed, sorted.
func (x *index) portsFor(name string) []uint16 {
	all := map[uint16]bool{}
	for p := range x.places(name) {
		for port := range p.by {
			all[port] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// portsOf returns the ports on which an address is allowed, sorted.
func (x *index) portsOf(a netip.Addr) []uint16 {
	all := map[uint16]bool{}
	for _, bits := range x.bits {
		p, err := a.Prefix(bits)
		if err != nil || x.nets[p] == nil {
			continue
		}
		for port := range x.nets[p].by {
			all[port] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// list writes ports, at most five.
func list(ports []uint16) string {
	const most = 5
	var words []string
	for _, p := range ports[:min(len(ports), most)] {
		words = append(words, strconv.Itoa(int(p)))
	}
	if len(ports) > most {
		words = append(words, fmt.Sprintf("%d other ports", len(ports)-most))
	}
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
