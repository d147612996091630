// Package rule reads the rules of a network by name, and decides by them.
//
// A rule is HOST[:PORT][/KIND]. Set.Decide is the one function that says whether
// something is allowed. What asks it may be a check, a resolver, what connects, or what
// reads the first bytes of a connection: they can't disagree.
package rule

import (
	"net/netip"
	"strconv"
	"strings"
)

// Form is which hosts a rule means.
type Form uint8

const (
	Exact  Form = iota // one name
	Below              // "*.name": names at any depth below, not the name itself
	All                // "*": every name whose address is public
	Local              // "localhost": servers of this machine that the session did not start
	Prefix             // an address, or all that begin alike
)

// Kind is what a connection carries.
type Kind string

const (
	TLS  Kind = "tls"  // begins with a ClientHello that names the host
	HTTP Kind = "http" // HTTP/1: each request names the host
	TCP  Kind = "tcp"  // anything; what begins as TLS or HTTP is checked all the same
)

// Rule is one rule, as Parse returns it. A denial has no kind and no marks, and its port may be 0.
type Rule struct {
	Form    Form
	Name    string       // in lower case; of Below, without "*."; "" for other forms than Exact and Below
	Prefix  netip.Prefix // of the form Prefix
	Port    uint16       // 0 in a denial: all ports
	Kind    Kind         // TCP if Direct
	Private bool         // the addresses of the name may be private
	ECH     bool         // a ClientHello may have an encrypted one in it
}

// Direct reports whether what the rule allows is connected as it is: no name is left to check.
func (r *Rule) Direct() bool { return r.Form != Exact && r.Form != Below }

// Host writes the host of a rule.
func (r *Rule) Host() string {
	switch r.Form {
	case Below:
		return "*." + r.Name
	case All:
		return "*"
	case Local:
		return "localhost"
	case Prefix:
		return hostOf(r.Prefix)
	}
	return r.Name
}

// hostOf writes a prefix as rules do: one address without its length, IPv6 in brackets.
func hostOf(p netip.Prefix) string {
	text := p.String()
	if p.IsSingleIP() {
		text = p.Addr().String()
	}
	if p.Addr().Is6() {
		return "[" + text + "]"
	}
	return text
}

// String writes a rule in its shortest form. Parse reads it back; the marks are not in it.
func (r *Rule) String() string {
	text := r.Host()
	denial := r.Kind == ""
	if r.Port != 0 && (denial || r.Port != defaultPort || r.Form == Prefix) {
		text += ":" + strconv.Itoa(int(r.Port))
	}
	if !denial && r.Kind != defaultKind(r.Form, r.Port) {
		text += "/" + string(r.Kind)
	}
	return text
}

// defaultPort is the port of a rule that has none.
const defaultPort = 443

// defaultKind is what a connection carries if the rule does not say it.
func defaultKind(f Form, port uint16) Kind {
	if f != Exact && f != Below {
		return TCP
	}
	switch port {
	case 443:
		return TLS
	case 80:
		return HTTP
	}
	return TCP
}

// Covers reports whether everything that narrow allows is allowed by wide: names, port, kind
// and marks.
func Covers(wide, narrow *Rule) bool {
	if wide.Port != narrow.Port && wide.Port != 0 {
		return false
	}
	if !hostCovers(wide, narrow) {
		return false
	}
	if wide.Direct() {
		return !narrow.Private
	}
	kind := wide.Kind == TCP || wide.Kind == narrow.Kind
	return kind && (wide.Private || !narrow.Private) && (wide.ECH || !narrow.ECH)
}

// hostCovers reports whether each host of narrow is one of wide.
func hostCovers(wide, narrow *Rule) bool {
	switch wide.Form {
	case Exact:
		return narrow.Form == Exact && wide.Name == narrow.Name
	case Below:
		return narrow.Form == Exact && isBelow(narrow.Name, wide.Name) ||
			narrow.Form == Below && (wide.Name == narrow.Name || isBelow(narrow.Name, wide.Name))
	case All:
		return narrow.Form == Exact || narrow.Form == Below || narrow.Form == All
	case Local:
		return narrow.Form == Local || narrow.Form == Prefix && ofThisMachine(narrow.Prefix)
	}
	return narrow.Form == Prefix && contains(wide.Prefix, narrow.Prefix)
}

// isBelow reports whether a name lies below another, at any depth.
func isBelow(name, parent string) bool {
	head, ok := strings.CutSuffix(name, parent)
	return ok && strings.HasSuffix(head, ".")
}

// contains reports whether all addresses that narrow allows are allowed by wide. The addresses
// of this machine are allowed only by a prefix that has no others.
func contains(wide, narrow netip.Prefix) bool {
	if wide.Bits() > narrow.Bits() || !wide.Contains(narrow.Addr()) {
		return false
	}
	return ofThisMachine(wide) || !ofThisMachine(narrow)
}
