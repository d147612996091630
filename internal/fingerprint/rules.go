package fingerprint

import (
	"path"
	"strings"
)

// Rule is a rule of a profile. Filters are alternatives. A rule without filters is for
// everything.
type Rule struct {
	Allow   bool
	Ops     []string
	Filters []string
	Why     string
}

// Escapes returns rules that close the ways to make programs outside act for a process. What is
// started that way would not be under the profile. homes are the names of the user's home
// directory. The error is Quote's.
func Escapes(homes ...string) ([]Rule, error) {
	var above []string // directories of the user's launch agents, which could be moved
	for i, home := range homes {
		if !path.IsAbs(home) || home == "/" || i > 0 && home == homes[i-1] {
			continue
		}
		for dir := path.Join(home, "Library"); dir != "/"; dir = path.Dir(dir) {
			q, err := Quote(dir)
			if err != nil {
				return nil, err
			}
			above = append(above, "(literal "+q+")")
		}
	}
	var agents []string
	for _, re := range Agents(homes...) {
		q, err := Quote(re)
		if err != nil {
			return nil, err
		}
		agents = append(agents, "(regex "+q+")")
	}
	rules := []Rule{
		{Ops: []string{"lsopen"}, Why: "open(1) starts programs outside"},
		{Ops: []string{"appleevent-send"}, Why: "apple events"},
		{Ops: []string{"job-creation"}, Why: "launchd jobs"},
		{Ops: []string{"mach-lookup"}, Filters: GlobalNames(launchNames()), Why: "launch services"},
		{Ops: []string{"mach-lookup"}, Filters: GlobalNames(keychainNames()), Why: "keychain"},
		{Ops: WriteOps(), Filters: agents, Why: "launch agents"},
	}
	if len(above) > 0 {
		rules = append(rules, Rule{Ops: []string{"file-write-unlink"}, Filters: above, Why: "launch agents"})
	}
	return rules, nil
}

// NoTyping is a rule of every profile, against typing into the caller's terminal: the caller's
// shell would execute it (tty(4), TIOCSTI). Releases that lack the name refuse this by themselves
// in a profile that denies by default.
const NoTyping = "(if (defined? 'TIOCSTI) (deny file-ioctl (ioctl-command TIOCSTI)))\n"

// Agents returns regular expressions for the files by which launchd starts programs.
func Agents(homes ...string) []string {
	const below = "/Library/LaunchAgents"
	all := []string{Fold(below), Fold("/Library/LaunchDaemons"), "^/Users/[^/]+" + strings.TrimPrefix(Fold(below), "^")}
	for i, home := range homes {
		if path.IsAbs(home) && (i == 0 || home != homes[i-1]) {
			all = append(all, Fold(path.Join(home, below)))
		}
	}
	return all
}

// launchNames returns the services that start programs for others.
func launchNames() []string {
	return []string{
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
		"com.apple.runningboard", // it starts what LaunchServices asks for
		"com.apple.xpc.smd",
	}
}

// keychainNames returns the services that give out the user's secrets.
func keychainNames() []string {
	return []string{
		"com.apple.SecurityServer",
		"com.apple.secd",
		"com.apple.security.agent",
		"com.apple.security.keychaind",
		"com.apple.securityd",
		"com.apple.securityd.xpc",
	}
}

// Marks returns the rules of the fingerprint. They come last in a profile, so that no other
// rule changes the answers. session must be valid.
func Marks(session string) []Rule {
	name := Name(session)
	return []Rule{
		{Ops: []string{"mach-lookup"}, Filters: GlobalNames([]string{name + ".deny"})},
		{Allow: true, Ops: []string{"mach-lookup"}, Filters: GlobalNames([]string{name + ".allow"})},
	}
}

// TrackProfile returns the profile of a command that is only tracked. It allows all except the
// escapes and the denied mark. session must be valid.
func TrackProfile(session string, homes ...string) (string, error) {
	escapes, err := Escapes(homes...)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("(version 1)\n(allow default)\n" + NoTyping)
	for _, r := range append(escapes, Marks(session)...) {
		action := "deny"
		if r.Allow {
			action = "allow"
		}
		b.WriteString("(" + action + " " + strings.Join(append(r.Ops, r.Filters...), " ") + ")\n")
	}
	return b.String(), nil
}

// GlobalNames returns filters for services by name.
func GlobalNames(names []string) []string {
	var fs []string
	for _, n := range names {
		fs = append(fs, "(global-name "+literal(n)+")")
	}
	return fs
}

// The groups of operations. A denial that must hold names the wildcard and every leaf. Seatbelt
// asks an operation's own rules first, whatever their order, and only then those of the
// wildcard above it.

// ReadOps returns the operations of reading a file.
func ReadOps() []string {
	return []string{"file-read*", "file-read-data", "file-read-metadata", "file-read-xattr"}
}

// WriteOps returns the operations of writing a file and of making a socket.
func WriteOps() []string {
	return []string{
		"file-write*", "file-write-acl", "file-write-create", "file-write-data",
		"file-write-finderinfo", "file-write-flags", "file-write-mode", "file-write-owner",
		"file-write-setugid", "file-write-times", "file-write-unlink", "file-write-xattr",
		"file-link", "network-bind", "network-inbound",
	}
}
