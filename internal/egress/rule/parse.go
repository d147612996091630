package rule

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Error is what is wrong with a rule.
type Error struct {
	Column int    // of the byte within the rule from which on it is wrong, from 1
	Msg    string // lower-case, no full stop
	Hint   string // what to write or type instead; may be ""
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// Marks are what a rule says beside its text.
type Marks struct {
	Private bool // the addresses of the name may be private
	ECH     bool // a ClientHello may have an encrypted one in it
}

// Parse reads HOST[:PORT][/KIND]. The error is an *Error.
func Parse(text string, marks Marks) (Rule, error) {
	p := parser{text: text}
	r := p.rule()
	if p.err == nil {
		p.mark(&r, marks)
	}
	if p.err != nil {
		return Rule{}, p.err
	}
	return r, nil
}

// ParseDenial reads HOST[:PORT]. Without a port all are denied. The error is an *Error.
func ParseDenial(text string) (Rule, error) {
	p := parser{text: text, denial: true}
	r := p.rule()
	if p.err != nil {
		return Rule{}, p.err
	}
	return r, nil
}

// parser reads one rule. Its methods do nothing more once there is an error.
type parser struct {
	text   string
	denial bool
	err    *Error
}

// fail notes what is wrong from a byte of the text on.
func (p *parser) fail(at int, hint, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{Column: at + 1, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
}

// rule reads the whole text.
func (p *parser) rule() (r Rule) {
	p.characters()
	if p.err != nil {
		return r
	}
	host, rest := p.split()
	port := rest
	kind := ""
	slash := strings.IndexByte(rest, '/')
	if slash >= 0 {
		port = rest[:slash]
		kind = rest[slash:]
	}
	p.host(&r, host)
	p.port(&r, len(host), port)
	p.kind(&r, len(host)+len(port), kind)
	return r
}

// characters refuses what no rule has in any place.
func (p *parser) characters() {
	switch {
	case p.text == "":
		p.fail(0, "", "an empty rule: a rule is HOST[:PORT][/tls|/http|/tcp]")
	case len(p.text) > longestRule:
		p.fail(maxName, "", "%s is too long: names have at most %d bytes", Quote(p.text), maxName)
	}
	if i := strings.Index(p.text, "://"); i >= 0 && p.err == nil {
		host, _, _ := strings.Cut(p.text[i+3:], "/")
		scheme := Quote(p.text[:i+3])
		p.fail(0, clean(host), "a rule has no scheme such as %s: it is HOST[:PORT][/tls|/http|/tcp]", scheme)
	}
	for i, c := range p.text {
		if p.err != nil {
			return
		}
		p.character(i, c)
	}
}

// longestRule is more than the longest name with a wildcard, a port and a kind has.
const longestRule = 300

// character refuses one that no rule has.
func (p *parser) character(i int, c rune) {
	switch c {
	case '@':
		p.fail(i, clean(p.text[i+1:]), "a rule has no user before %q", "@")
	case '?', '#':
		p.fail(i, clean(p.text[:i]), "a rule has no query and no fragment: hosts are allowed, not pages")
	}
	if c > '~' {
		p.fail(i, "", "%s is not ASCII: write the A-label of the name, which begins with %q", Quote(p.text), "xn--")
	}
	if c <= ' ' {
		p.fail(i, "", "%s has a space or a control character in it", Quote(p.text))
	}
}

// clean returns a text as a hint if it is a rule, or "".
func clean(text string) string {
	if _, err := Parse(text, Marks{}); err != nil {
		return ""
	}
	return text
}

// split separates the host from what follows.
func (p *parser) split() (host, rest string) {
	end := 0
	if p.text[0] == '[' {
		end = strings.IndexByte(p.text, ']') + 1
		if end == 0 {
			p.fail(0, "", "%s has no %q", Quote(p.text), "]")
		}
	} else {
		end = strings.IndexByte(p.text, ':')
	}
	if end < 0 {
		end = p.withoutPort()
	}
	rest = p.text[end:]
	if rest != "" && rest[0] != ':' && rest[0] != '/' {
		p.fail(end, "", "%s is not expected after %s", Quote(rest), Quote(p.text[:end]))
	}
	return p.text[:end], rest
}

// withoutPort returns where the host of a text without a colon ends. The slash of a prefix is
// part of it.
func (p *parser) withoutPort() int {
	end := strings.IndexByte(p.text, '/')
	if end < 0 {
		return len(p.text)
	}
	if _, err := netip.ParseAddr(p.text[:end]); err != nil {
		return end
	}
	return len(p.text)
}

// host reads the host.
func (p *parser) host(r *Rule, host string) {
	if host == "" {
		p.fail(0, "", "%s has no host", Quote(p.text))
		return
	}
	host = strings.ToLower(host)
	if host == "*" {
		r.Form = All
		return
	}
	if host == "localhost" {
		r.Form = Local
		return
	}
	if p.prefix(r, host) {
		return
	}
	r.Name = strings.TrimSuffix(host, ".")
	if rest, ok := strings.CutPrefix(r.Name, "*."); ok {
		r.Form = Below
		r.Name = rest
	}
	p.name(r.Name, len(host)-len(strings.TrimPrefix(host, "*.")))
	p.labels(r, host)
}

// prefix reads an address or a prefix, and reports whether the host is meant to be one.
func (p *parser) prefix(r *Rule, host string) bool {
	text := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	brackets := text != host
	if !brackets && strings.Count(p.text, ":") > 1 {
		p.fail(0, "", "an IPv6 address needs brackets and a port, as in %q", "[2001:db8::1]:443")
		return true
	}
	if !brackets && !strings.Contains(text, "/") && !numeric(text) {
		return false
	}
	r.Form = Prefix
	if !strings.Contains(text, "/") {
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" {
			p.fail(0, "", "%s is no address", Quote(host))
			return true
		}
		text = netip.PrefixFrom(a, a.BitLen()).String()
	}
	prefix, err := netip.ParsePrefix(text)
	switch {
	case err != nil:
		p.fail(0, "", "%s is no prefix of addresses, such as 192.0.2.0/24", Quote(host))
	case prefix.Addr().Is4In6():
		p.fail(0, prefix.Addr().Unmap().String(), "%s is an IPv4 address: write it as one", Quote(host))
	case prefix.Masked() != prefix:
		p.fail(0, hostOf(prefix.Masked()), "%s has bits after its prefix", Quote(host))
	}
	if brackets != prefix.Addr().Is6() {
		p.fail(0, "", "brackets are for IPv6 addresses: %s", Quote(host))
	}
	r.Prefix = prefix
	return true
}

// numeric reports whether the last label of a host is a number, as only addresses have it.
func numeric(host string) bool {
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// name checks a name, which begins at a byte of the text.
func (p *parser) name(name string, at int) {
	if len(name) > maxName {
		p.fail(at, "", "the name has %d bytes, but names have at most %d", len(name), maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		p.label(label, at)
		at += len(label) + 1
	}
}

// The longest name and the longest label of one, in bytes.
const (
	maxName  = 253
	maxLabel = 63
)

// label checks one label of a name.
func (p *parser) label(label string, at int) {
	if label == "" {
		p.fail(at, "", "%s has an empty label: two dots, or one at the beginning", Quote(p.text))
		return
	}
	if len(label) > maxLabel {
		text := "%s has a label of %d bytes, but labels have at most %d"
		p.fail(at, "", text, Quote(p.text), len(label), maxLabel)
	}
	if i := strings.IndexByte(label, '*'); i >= 0 {
		p.fail(at+i, "", "a wildcard stands alone at the beginning, as in %q", "*.packages.example")
	}
	for i := range len(label) {
		if !nameByte(label[i]) {
			p.fail(at+i, "", "%s in %s is no character of a host name", Quote(label[i:i+1]), Quote(p.text))
		}
	}
	if label[0] == '-' || label[len(label)-1] == '-' {
		p.fail(at, "", "the label %s begins or ends with a hyphen", Quote(label))
	}
}

// nameByte reports whether a byte may be in a label. Some hosts have an underscore.
func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// IsHost reports whether a name in lower case has only characters that names of hosts have.
func IsHost(name string) bool {
	for i := range len(name) {
		if !nameByte(name[i]) && name[i] != '.' {
			return false
		}
	}
	return name != ""
}

// labels refuses names that have too few labels.
func (p *parser) labels(r *Rule, host string) {
	if strings.Contains(r.Name, ".") {
		return
	}
	if r.Form == Below {
		p.fail(0, "*.example."+r.Name, "%s is all of %q: a wildcard needs two labels after it", Quote(host), r.Name)
		return
	}
	text := "%s is no host: there are no groups of hosts, and zsbx learn finds those that a command needs"
	p.fail(0, "zsbx learn", text, Quote(host))
}

// port reads ":PORT".
func (p *parser) port(r *Rule, at int, text string) {
	if text == "" {
		p.noPort(r, at)
		return
	}
	digits := text[1:]
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 || digits[0] == '0' || digits[0] == '+' {
		p.fail(at+1, "", "%s is no port: ports are 1 to 65535", Quote(digits))
		return
	}
	r.Port = uint16(n)
}

// noPort sets the port of a rule that has none.
func (p *parser) noPort(r *Rule, at int) {
	if p.denial {
		return
	}
	if r.Form == Prefix {
		p.fail(at, p.text+":443", "an address needs a port")
	}
	r.Port = defaultPort
}

// kind reads "/KIND".
func (p *parser) kind(r *Rule, at int, text string) {
	if p.denial {
		if text != "" {
			p.fail(at, p.text[:at], "what is denied is denied for every kind: leave out %s", Quote(text))
		}
		return
	}
	r.Kind = defaultKind(r.Form, r.Port)
	if text == "" {
		return
	}
	switch kind := Kind(strings.ToLower(text[1:])); kind {
	case TLS, HTTP, TCP:
		r.Kind = kind
	default:
		p.fail(at, p.text[:at], "%s is no kind: it is /tls, /http or /tcp, and a rule has no path", Quote(text))
	}
	if r.Direct() && r.Kind != TCP {
		p.fail(at, p.text[:at], "%s is connected directly, no name is checked: leave out %s", r.Host(), Quote(text))
	}
}

// mark adds the marks to a rule, and refuses those that mean nothing for it.
func (p *parser) mark(r *Rule, m Marks) {
	r.Private = m.Private
	r.ECH = m.ECH
	switch {
	case m.Private && r.Form == All:
		p.fail(0, "", `"*" is every name with a public address: name the hosts whose addresses are private`)
	case m.Private && r.Direct():
		p.fail(0, "", "%s is no name: an address that is written down may be private without a mark", Quote(p.text))
	case m.ECH && r.Kind != TLS:
		p.fail(0, "", "%s is not TLS, so it has no encrypted ClientHello", Quote(p.text))
	}
}
