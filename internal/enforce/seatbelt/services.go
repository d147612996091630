package seatbelt

import (
	_ "embed"
	"errors"
	"regexp"
	"slices"
	"strconv"

	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// resolverSocket is the socket for name lookups.
const resolverSocket = "/private/var/run/mDNSResponder"

// network allows the system services that programs with a network use.
//
//go:embed network.sb
var network string

// network writes what the network mode opens. It never opens sockets in the file system:
// "(remote ip)" leaves them closed, which the operation without a filter would not. proxy is the port of
// zsbx's proxy, or 0.
func (w *sbpl) network(r *resolve.Resolved, proxy uint16) {
	from := "zsbx"
	if r.Net.From != (policy.Origin{}) {
		from = r.Net.From.String()
	}
	if r.Net.Mode == resolve.NetOpen || r.Net.Mode == resolve.NetPorts {
		w.section("network: what it takes")
		w.b.WriteString(network)
	}
	switch r.Net.Mode {
	case resolve.NetOpen:
		w.section("network: open")
		w.allow([]string{"network-outbound"}, from, "(remote ip)")
		w.allow([]string{"network-bind", "network-inbound"}, from, "(local ip)")
		w.allow([]string{"system-socket"}, from)
		w.allow([]string{"file-read-metadata"}, from+": name lookups", `(literal "/private/var/run")`)
		w.allow([]string{"network-outbound"}, from+": name lookups", `(literal "`+resolverSocket+`")`)
		w.allow([]string{"file-read*"}, from+": name lookups", `(literal "/private/var/run/resolv.conf")`)
		w.allow([]string{"mach-lookup"}, from+": name lookups", `(global-name "com.apple.dnssd.service")`)
	case resolve.NetPorts:
		w.section("network: these TCP ports only")
		for _, p := range r.Net.ConnectTCP {
			w.allow([]string{"network-outbound"}, p.Origin.String(), tcpFilter("remote", p.Number))
		}
		for _, p := range r.Net.BindTCP {
			w.allow([]string{"network-bind", "network-inbound"}, p.Origin.String(), tcpFilter("local", p.Number))
		}
	case resolve.NetNone:
		w.section("network: none")
	case resolve.NetHosts: // names are resolved by the proxy: a question to a name server would carry data out
		if proxy == 0 {
			w.section("network: none without a session, whose proxy has a port of its own on localhost")
			break
		}
		w.section("network: the session's proxy")
		w.allow([]string{"network-outbound"}, from, `(remote tcp "localhost:`+strconv.Itoa(int(proxy))+`")`)
	default:
		w.fail(string(r.Net.Mode), r.Net.From, errors.New("the network mode is unknown"))
	}
}

func tcpFilter(side string, port uint16) string {
	return "(" + side + ` tcp "*:` + strconv.Itoa(int(port)) + `")`
}

// escapes closes the ways to make programs outside act for the command, as in sessions that are
// only tracked.
func (w *sbpl) escapes(r *resolve.Resolved) {
	w.section("nothing may act outside on the command's behalf")
	from := byZsbx("home directory")
	rules, err := fingerprint.Escapes(w.optionalPath(r.Home, from), w.optionalPath(r.RealHome, from))
	if err != nil {
		w.fail(r.Home, from, err)
	}
	w.rules(rules, "zsbx: ")
	w.b.WriteString(fingerprint.NoTyping)
}

// rules writes rules of package fingerprint.
func (w *sbpl) rules(rules []fingerprint.Rule, from string) {
	for _, r := range rules {
		if r.Allow {
			w.allow(r.Ops, from+r.Why, r.Filters...)
		} else {
			w.deny(r.Ops, from+r.Why, r.Filters...)
		}
	}
}

// sockets opens the sockets that the policy names, and those in the session's private temporary
// directory, where nobody else listens. It comes after escapes, so that the policy can override
// these.
//
// In a writable tree sockets can be made, which is a part of writing, but not connected to. A
// rule for the whole tree would also open sockets on which programs outside listen.
func (w *sbpl) sockets(r *resolve.Resolved) {
	w.section("sockets in the file system")
	w.allow([]string{"system-socket"}, "zsbx: what is connected is another question", "(socket-domain AF_UNIX)")
	w.deny([]string{"network-outbound"}, "zsbx: launchd's sockets",
		`(regex "^/private/(tmp|var/run)/com\\.apple\\.launchd\\.[^/]+/Listeners$")`)
	if from := byZsbx("temporary directory"); r.TempDir != "" {
		w.allow([]string{"network-outbound"}, from.String(), w.filter("subpath", w.path(r.TempDir, from), from))
	}
	for _, p := range r.Net.Unix {
		w.allow([]string{"network-outbound"}, origin(p.Rule.Origin, p.Rule.Path), w.tree(p))
	}
}

// protected writes the paths that no rule makes writable, and those that no rule makes
// readable.
func (w *sbpl) protected(o Options) {
	w.zsbxPaths("never writable", "protected", fingerprint.WriteOps(), o.Protect)
	for _, p := range o.Unmade {
		from := byZsbx("protected")
		w.deny(fingerprint.WriteOps(), origin(from, p), w.filter("regex", fingerprint.Fold(w.path(p, from)), from))
	}
	w.zsbxPaths("zsbx's own records", "hidden", AccessOps(), o.Hide)
}

// Closed returns the path that the profile closes to an access at p, whatever the policy
// allows, or "".
func (o *Options) Closed(r *resolve.Resolved, p string, a policy.Access) string {
	in := func(dir string) bool { return host.Within(p, dir) }
	if i := slices.IndexFunc(o.Hide, in); i >= 0 {
		return o.Hide[i]
	}
	if i := slices.IndexFunc(o.Deny, func(d resolve.DenyPath) bool { return in(d.Pattern) }); i >= 0 {
		return o.Deny[i].Pattern
	}
	if a&policy.Write == 0 {
		return ""
	}
	if i := slices.IndexFunc(o.Protect, in); i >= 0 {
		return o.Protect[i]
	}
	spelled := fingerprint.Agents(r.Home, r.RealHome)
	for _, unmade := range o.Unmade {
		spelled = append(spelled, fingerprint.Fold(unmade))
	}
	for _, re := range spelled {
		if is, _ := regexp.MatchString(re, p); is {
			return p
		}
	}
	return ""
}

func (w *sbpl) zsbxPaths(section, why string, ops []string, paths []string) {
	if len(paths) == 0 {
		return
	}
	w.section(section)
	for _, p := range paths {
		w.denyPath(ops, resolve.DenyPath{Pattern: p, Deny: policy.Named{Value: p, Origin: byZsbx(why)}})
	}
}

// fingerprint writes the two marks by which zsbx recognizes a process of this session.
func (w *sbpl) fingerprint(session string) {
	if session == "" {
		w.section("no fingerprint: this profile belongs to no session")
		return
	}
	w.section("the session's fingerprint")
	w.rules(fingerprint.Marks(session), "zsbx: fingerprint")
}
