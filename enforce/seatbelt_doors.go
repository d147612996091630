package enforce

import (
	"strconv"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/policy"
)

// resolverSocket is where name lookups go.
const resolverSocket = "/private/var/run/mDNSResponder"

// network writes what the network mode opens. Sockets in the file system are
// never opened by it: "(remote ip)" leaves them closed, where the bare
// operation would not.
func (w *sbpl) network(r *policy.Resolved) {
	from := "zsbx"
	if r.Net.From != (policy.Origin{}) {
		from = r.Net.From.String()
	}
	switch r.Net.Mode {
	case policy.NetOpen:
		w.section("network: open")
		w.allow([]string{"network-outbound"}, from, "(remote ip)")
		w.allow([]string{"network-bind", "network-inbound"}, from, "(local ip)")
		w.allow([]string{"system-socket"}, from)
		w.allow([]string{"network-outbound"}, from+": name lookups", "(literal "+quoteLiteral(resolverSocket)+")")
		w.allow([]string{"file-read*"}, from+": name lookups", `(literal "/private/var/run/resolv.conf")`)
	case policy.NetPorts:
		w.section("network: these TCP ports only")
		for _, p := range r.Net.ConnectTCP {
			w.allow([]string{"network-outbound"}, p.Origin.String(), tcpFilter("remote", p.Number))
		}
		for _, p := range r.Net.BindTCP {
			w.allow([]string{"network-bind", "network-inbound"}, p.Origin.String(), tcpFilter("local", p.Number))
		}
	case policy.NetNone:
		w.section("network: none")
	default:
		w.fail(string(r.Net.Mode), r.Net.From, errNetMode)
	}
}

func tcpFilter(side string, port uint16) string {
	return "(" + side + ` tcp "*:` + strconv.Itoa(int(port)) + `")`
}

// doors shuts the ways by which a process has others act outside for it. None
// of what is started so carries the profile, so this holds for sessions that
// are only tracked, too.
func (w *sbpl) doors(r *policy.Resolved) {
	w.section("doors: nothing may act outside on the command's behalf")
	w.deny([]string{"lsopen"}, "zsbx: open(1) starts programs outside")
	w.deny([]string{"appleevent-send"}, "zsbx: apple events")
	w.deny([]string{"job-creation"}, "zsbx: launchd jobs")
	w.deny([]string{"mach-lookup"}, "zsbx: launch services", globalNames(launchNames)...)
	w.deny([]string{"mach-lookup"}, "zsbx: keychain", globalNames(keychainNames)...)
	agents := []string{
		`(regex "^/Users/[^/]+/Library/LaunchAgents(/.*)?$")`,
		`(subpath "/Library/LaunchAgents")`,
		`(subpath "/Library/LaunchDaemons")`,
	}
	if home := w.optionalPath(r.Home, own("home directory")); home != "" && home != "/" {
		if f := w.filter("subpath", home+"/Library/LaunchAgents", own("launch agents")); f != "" {
			agents = append(agents, f)
		}
		w.deny([]string{"file-write-unlink"}, "zsbx: launch agents",
			w.filter("literal", home+"/Library", own("launch agents")))
	}
	w.deny(writeOps(), "zsbx: launch agents", agents...)
}

// launchNames are the services that start programs for others.
var launchNames = []string{
	"com.apple.coreservices.appleevents",
	"com.apple.coreservices.launchservicesd",
	"com.apple.coreservices.quarantine-resolver",
	"com.apple.launchservicesd",
	"com.apple.lsd.advertisingidentifiers",
	"com.apple.lsd.diagnostics",
	"com.apple.lsd.dissemination",
	"com.apple.lsd.icons",
	"com.apple.lsd.mapdb",
	"com.apple.lsd.modifydb",
	"com.apple.lsd.open",
	"com.apple.lsd.openurl",
	"com.apple.lsd.trustedsignatures",
	"com.apple.lsd.xpc",
	"com.apple.xpc.smd",
}

// keychainNames are the services that hand out the user's secrets.
var keychainNames = []string{
	"com.apple.SecurityServer",
	"com.apple.secd",
	"com.apple.security.agent",
	"com.apple.security.keychaind",
	"com.apple.securityd",
	"com.apple.securityd.xpc",
}

// sockets opens the sockets that the policy names, and those in the session's
// private temporary directory, where nobody else listens. It comes after the
// doors: what was asked for by name is asked for.
func (w *sbpl) sockets(r *policy.Resolved) {
	w.section("sockets in the file system")
	w.deny([]string{"network-outbound"}, "zsbx: launchd's sockets",
		`(regex "^/private/(tmp|var/run)/com\\.apple\\.launchd\\.[^/]+/Listeners$")`)
	if tmp := w.optionalPath(r.TempDir, own("temporary directory")); tmp != "" {
		w.allow([]string{"network-bind", "network-inbound", "network-outbound"}, "zsbx: temporary directory",
			w.filter("subpath", tmp, own("temporary directory")))
	}
	for _, p := range r.Net.Unix {
		if c := w.path(p.Path, p.Rule.Origin); c != "" {
			w.allow([]string{"network-outbound"}, origin(p.Rule.Origin, p.Rule.Path),
				w.filter("literal", c, p.Rule.Origin))
		}
	}
}

// protected writes the paths that nothing makes writable, and those that nothing
// makes readable.
func (w *sbpl) protected(o SeatbeltOptions) {
	w.ownPaths("never writable", "protected", writeOps(), o.Protect)
	w.ownPaths("zsbx's own records", "hidden", accessOps(), o.Hide)
}

func (w *sbpl) ownPaths(section, why string, ops []string, paths []string) {
	if len(paths) == 0 {
		return
	}
	w.section(section)
	for _, p := range paths {
		w.denyPath(ops, policy.DenyPath{Pattern: p, Deny: policy.Deny{Pattern: p, Origin: own(why)}})
	}
}

// fingerprint writes the two marks by which a process of this session is
// known from outside: of two paths, and of two service names, one is allowed and
// one denied. No other profile answers so, and none at all allows both. It comes
// last, so that no rule of a policy can change the answers, and nobody under the
// profile can remove the files.
func (w *sbpl) fingerprint(session string) {
	if session == "" {
		w.section("no fingerprint: this profile belongs to no session")
		return
	}
	dir, name, from := fingerprint.Dir(session), fingerprint.Name(session), "zsbx: fingerprint"
	sub := func(p string) string { return "(subpath " + quoteLiteral(p) + ")" }
	w.section("the session's fingerprint")
	w.deny(writeOps(), from, sub(dir))
	w.deny(readOps(), from, sub(dir+"/deny"))
	w.allow(readOps(), from, sub(dir+"/allow"))
	w.deny([]string{"mach-lookup"}, from, "(global-name "+quoteLiteral(name+".deny")+")")
	w.allow([]string{"mach-lookup"}, from, "(global-name "+quoteLiteral(name+".allow")+")")
}
