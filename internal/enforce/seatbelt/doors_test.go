package seatbelt_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// compile writes and compiles a profile for the newest release.
func compile(t *testing.T, r *resolve.Resolved, o seatbelt.Options) *Profile {
	t.Helper()
	text, err := seatbelt.Profile(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return compileText(t, text)
}

// trackProfile is the profile of a command that is only tracked.
func trackProfile(t *testing.T, homes ...string) string {
	t.Helper()
	text, err := fingerprint.TrackProfile(testSession, homes...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// compileText compiles a profile for the newest release.
func compileText(t *testing.T, text string) *Profile {
	t.Helper()
	var p *Profile
	var err error
	for _, rel := range releases() {
		p, err = Compile(text, rel, nil)
		if err != nil {
			t.Fatalf("macOS %d: %v\n%s", rel, err, text)
		}
	}
	return p
}

const allAccess = policy.Read | policy.Write | policy.Exec

func denial(p string) resolve.DenyPath {
	return resolve.DenyPath{Pattern: p, Glob: strings.ContainsAny(p, "*?["),
		Deny: policy.Named{Value: p, Origin: policy.Origin{Source: "--deny"}}}
}

func service(name string) Target { return Target{Name: name} }
func file(p string) Target       { return Target{Path: p} }

// The operations on files that have their own rules, as macOS lists them. This is not the
// generator's list, which is tested here.
func leaves() (reading, writing, executing []string) {
	reading = []string{"file-read*", "file-read-data", "file-read-metadata", "file-read-xattr"}
	writing = []string{
		"file-write*", "file-write-acl", "file-write-create", "file-write-data", "file-write-finderinfo", "file-write-flags",
		"file-write-mode", "file-write-owner", "file-write-setugid", "file-write-times", "file-write-unlink", "file-write-xattr",
		"file-link", "network-bind", "network-inbound",
	}
	return reading, writing, []string{"process-exec*", "process-exec", "file-map-executable"}
}

// TestDoors asks about every way to make other programs act outside, in both modes, with a
// policy that makes everything writable.
func TestDoors(t *testing.T) {
	r := macPolicy(flag("/", allAccess, fs.ModeDir))
	r.Home, r.RealHome = "/Volumes/homes/u", "/Volumes/D/real"
	agent := "/Users/u/Library/LaunchAgents"
	for _, only := range []bool{false, true} {
		p := compile(t, r, seatbelt.Options{Session: testSession, Terminal: "/dev/ttys003"})
		if only {
			p = compileText(t, trackProfile(t, r.Home, r.RealHome))
		}
		for _, q := range []question{
			{"lsopen", Target{}},
			{"appleevent-send", Target{}},
			{"job-creation", file("/usr/bin/true")},
			{"mach-lookup", service("com.apple.coreservices.launchservicesd")},
			{"mach-lookup", service("com.apple.launchservicesd")},
			{"mach-lookup", service("com.apple.lsd.mapdb")},
			{"mach-lookup", service("com.apple.lsd.open")},
			{"mach-lookup", service("com.apple.coreservices.quarantine-resolver")},
			{"mach-lookup", service("com.apple.coreservices.appleevents")},
			{"mach-lookup", service("com.apple.xpc.smd")},
			{"mach-lookup", service("com.apple.SecurityServer")},
			{"mach-lookup", service("com.apple.securityd")},
			{"mach-lookup", service("com.apple.securityd.xpc")},
			{"mach-lookup", service("com.apple.secd")},
			{"mach-lookup", service("com.apple.security.agent")},
			{"mach-lookup", service("com.apple.runningboard")},
			{"file-ioctl", Target{Path: "/dev/ttys003", Command: tiocsti}}, {"file-ioctl", Target{Path: "/dev/tty", Command: tiocsti}},
			{"file-write-create", file(agent + "/x.plist")},
			{"file-write-data", file(agent + "/x.plist")},
			{"file-write-unlink", file(agent)},
			{"file-write-create", file("/Users/u/Library/launchagents")}, {"file-write-create", file("/Users/u/Library/LaunchAgent\u017f/x.plist")},
			{"file-write-create", file("/Volumes/homes/u/Library/LAUNCHAGENTS/x.plist")},
			{"file-write-create", file("/Volumes/homes/u/Library/LaunchAgents/x.plist")},
			{"file-write-unlink", file("/Volumes/homes/u/Library")},
			{"file-write-create", file("/Volumes/D/real/Library/LaunchAgents/x.plist")},
			{"file-write-unlink", file("/Volumes/D/real/Library")}, {"file-write-unlink", file("/Volumes/D/real")},
			{"file-write-create", file("/Users/other/Library/LaunchAgents/x.plist")},
			{"file-write-create", file("/Library/LaunchDaemons/x.plist")},
		} {
			if d := p.Decide(q.op, q.target); d.Allowed {
				t.Errorf("track only %v: %s on %+v: %+v", only, q.op, q.target, d)
			}
		}
		// The control: the same acts beside the doors.
		for _, q := range []question{
			{"file-write-create", file("/Users/u/Library/x.plist")},
			{"file-write-unlink", file("/Users/u/Library/x")},
			{"file-write-create", file("/Volumes/D/real/Library/x.plist")},
			{"mach-lookup", service("com.apple.system.notification_center")},
			{"file-ioctl", file("/dev/ttys003")}, {"file-ioctl", file("/dev/tty")},
		} {
			if !p.Allowed(q.op, q.target) {
				t.Errorf("track only %v: %s on %+v is refused", only, q.op, q.target)
			}
		}
	}
}

// TestClosedByDefault asks about what a full profile closes besides the doors.
func TestClosedByDefault(t *testing.T) {
	p := compile(t, macPolicy(flag("/Users/u/proj", allAccess, fs.ModeDir)), seatbelt.Options{Session: testSession, Terminal: "/dev/ttys003"})
	others, ours := Target{Process: "others"}, Target{Process: "same-sandbox"}
	pty := Target{Path: "/dev/ttys009", Extensions: []string{"com.apple.sandbox.pty"}}
	for _, c := range []struct {
		op     string
		target Target
		want   bool
	}{
		{"signal", others, false}, {"signal", ours, true}, {"signal", Target{Process: "self"}, true},
		{"process-info-pidinfo", others, false}, {"process-info-pidinfo", ours, true},
		{"process-info-codesignature", others, false}, {"process-info-codesignature", ours, true},
		{"mach-priv-task-port", others, false},
		{"mach-lookup", service("com.apple.pasteboard.1"), false}, {"mach-lookup", service("com.apple.windowserver.active"), false},
		{"mach-lookup", service("com.apple.trustd.agent"), true}, {"mach-lookup", service("com.apple.unknown"), false},
		{"mach-register", service("x"), false},
		{"mach-lookup", Target{XPC: "dev.example.helper"}, false}, {"mach-lookup", service("com.apple.diagnosticd"), false},
		{"mach-lookup", service("com.apple.TrustEvaluationAgent"), true}, {"mach-lookup", service("com.apple.SystemConfiguration.configd"), true},
		{"system-fcntl", Target{Command: 64}, false}, {"system-fcntl", Target{Command: 80}, false}, {"system-fcntl", Target{Command: 110}, false}, {"system-fcntl", Target{Command: 50}, true},
		{"nvram-get", Target{}, false}, {"iokit-open", Target{}, false}, {"iokit-get-properties", Target{}, false},
		{"fs-snapshot-mount", file("/x"), false}, {"fs-snapshot-create", file("/x"), false}, {"file-graft", file("/x"), false},
		{"file-mount", file("/Users/u/proj"), false}, {"file-chroot", file("/Users/u/proj"), false}, {"file-mknod", file("/Users/u/proj/d"), false},
		{"file-write-setugid", file("/Users/u/proj/x"), false},
		{"file-clone", file("/Users/u/.ssh/id"), false}, {"file-clone", file("/Users/u/proj/x"), true},
		{"file-link", file("/usr/lib/x"), false}, {"file-link", file("/Users/u/.ssh/id"), false}, {"file-link", file("/Users/u/proj/x"), true},
		{"file-map-executable", file("/Users/u/lib.dylib"), false}, {"file-map-executable", file("/usr/lib/libSystem.B.dylib"), true},
		{"file-read-data", file("/dev/ttys003"), true}, {"file-ioctl", file("/dev/ttys003"), true},
		{"file-read-data", file("/dev/ttys004"), false}, {"file-write-data", file("/dev/ttys004"), false}, {"file-ioctl", file("/dev/ttys004"), false},
		{"file-read-data", pty, true}, {"file-write-data", pty, true}, {"file-write-data", file("/dev/ptmx"), true},
		{"file-read-metadata", file("/Users/u"), true}, {"file-read-data", file("/Users/u"), false}, {"file-read-metadata", file("/tmp"), true},
		{"file-read-metadata", file("/Users/u/Documents"), false}, {"file-read-data", file("/"), true},
		{"network-outbound", file("/private/var/run/mDNSResponder"), true}, {"file-read-metadata", file("/private/var/run"), true},
		{"file-write-unlink", file("/private/var/run/mDNSResponder"), false},
		{"network-outbound", file("/private/tmp/com.apple.launchd.abc/Listeners"), false},
		{"network-outbound", file("/private/var/folders/ab/cd/T/zsbx-1/s"), true}, {"network-bind", file("/private/var/folders/ab/cd/T/zsbx-1/s"), true},
		// A socket in the project can be made, but not connected to.
		{"network-bind", file("/Users/u/proj/s"), true}, {"network-inbound", file("/Users/u/proj/s"), true}, {"network-outbound", file("/Users/u/proj/s"), false},
		{"network-bind", file("/Users/u/s"), false}, {"network-inbound", file("/Users/u/s"), false}, {"network-bind", file("/private/tmp/s"), false},
		{"system-socket", service("AF_UNIX"), true},
		{"file-read-metadata", file("/dev/stdin"), true}, {"file-read-metadata", file("/dev/stdout"), true}, {"file-read-metadata", file("/dev/stderr"), true},
		{"file-read-data", file("/dev/stderr"), false}, {"file-write-data", file("/dev/fd/2"), true},
		{"mach-lookup", service("com.apple.dnssd.service"), true},
		{"sysctl-read", service("hw.ncpu"), true}, {"sysctl-write", service("kern.grade_cputype"), true}, {"sysctl-write", service("kern.hostname"), false},
		{"ipc-posix-shm-read-data", service("/psm_1234"), true}, {"ipc-posix-shm-read-data", service("/secret"), false},
	} {
		if d := p.Decide(c.op, c.target); d.Allowed != c.want {
			t.Errorf("%s on %+v: %+v, want %v", c.op, c.target, d, c.want)
		}
	}
}

// TestServicesWithoutNetwork: the network's settings can be read, certificates can't.
func TestServicesWithoutNetwork(t *testing.T) {
	r := macPolicy()
	r.Net = resolve.ResolvedNet{Mode: resolve.NetNone}
	p := compile(t, r, seatbelt.Options{})
	for name, want := range map[string]bool{
		"com.apple.SystemConfiguration.configd": true, "com.apple.trustd.agent": false,
		"com.apple.TrustEvaluationAgent": false, "com.apple.dnssd.service": false,
	} {
		if d := p.Decide("mach-lookup", service(name)); d.Allowed != want {
			t.Errorf("%s: %+v, want %v", name, d, want)
		}
	}
}

// TestWorkingDirectory: the working directory can be opened, since programs could not find out
// where they are otherwise. Nothing in it can, and it can't if it is denied.
func TestWorkingDirectory(t *testing.T) {
	r := macPolicy()
	dir := r.Dir
	for p, want := range map[string]bool{dir: true, dir + "/x": false, path.Dir(dir): false} {
		if d := compile(t, r, seatbelt.Options{}).Decide("file-read-data", Target{Path: p, Dir: true}); d.Allowed != want {
			t.Errorf("%s: %+v, want %v", p, d, want)
		}
	}
	r.Deny = []resolve.DenyPath{denial(dir)}
	if compile(t, r, seatbelt.Options{}).Allowed("file-read-data", file(dir)) {
		t.Error("a denied one can be listed")
	}
}

// TestDenialsNameAll: a denial names every operation, even those that no rule allows by itself
// today.
func TestDenialsNameAll(t *testing.T) {
	reading, writing, executing := leaves()
	for _, op := range slices.Concat(reading, writing, executing) {
		if !slices.Contains(seatbelt.AccessOps(), op) {
			t.Errorf("%s is not denied by name", op)
		}
	}
}

// TestDenialsOutrank asks about denied paths, whatever else is allowed.
func TestDenialsOutrank(t *testing.T) {
	r := macPolicy(
		flag("/Users/u/proj", allAccess, fs.ModeDir),
		flag("/Users/u/proj/.git/hooks/pre-commit", allAccess, 0),
		flag("/Users/u/proj/sub/deep/.env", policy.Read, 0),
		flag("/dev/null", policy.Read|policy.Write, fs.ModeDevice),
		flag("/Users/u/hidden/way/to/this", policy.Read, 0),
		flag("/Users/u/ro", policy.Read, fs.ModeDir),
	)
	r.Deny = []resolve.DenyPath{denial("/Users/u/hidden/way"), denial("/Users/u/proj/**/.env"), denial("/Users/u/proj/.git/hooks"), denial("/Users/u/proj/k/*.pem"), denial("/dev/null"), denial("/Users/u/ro/in/secret")}
	r.Net.Unix = []resolve.Path{{Path: "/Users/u/proj/.git/hooks/sock"}}
	o := seatbelt.Options{Session: testSession, Protect: []string{"/Users/u/proj/.zsbx.toml", "/Users/u/proj/state/sessions"}}
	p := compile(t, r, o)
	reading, writing, executing := leaves()
	for _, denied := range []string{
		"/Users/u/proj/.env", "/Users/u/proj/sub/deep/.env", "/Users/u/proj/.env/inner",
		"/Users/u/proj/.git/hooks", "/Users/u/proj/.git/hooks/pre-commit", "/Users/u/proj/.git/hooks/sock",
		"/Users/u/proj/k/a.pem", "/dev/null",
		"/Users/u/hidden/way", "/Users/u/hidden/way/to", "/Users/u/hidden/way/to/this",
	} {
		for _, op := range slices.Concat(reading, writing, executing, []string{"file-clone", "file-ioctl", "network-outbound"}) {
			if d := p.Decide(op, file(denied)); d.Allowed {
				t.Errorf("%s on %s: %+v", op, denied, d)
			}
		}
	}
	for _, protected := range []string{"/Users/u/proj/.zsbx.toml", "/Users/u/proj/state/sessions/x/record"} {
		for _, op := range writing {
			if d := p.Decide(op, file(protected)); d.Allowed {
				t.Errorf("%s on %s: %+v", op, protected, d)
			}
		}
		if !p.Allowed("file-read-data", file(protected)) {
			t.Errorf("%s cannot be read", protected)
		}
	}
	// Moving a directory above would take the path away from the rule.
	for _, above := range []string{"/Users/u/proj", "/Users/u/proj/.git", "/Users/u/proj/k", "/Users/u/proj/state"} {
		if d := p.Decide("file-write-unlink", file(above)); d.Allowed {
			t.Errorf("%s can be moved: %+v", above, d)
		}
	}
	// So would cloning one.
	clone := func(path string) bool { return p.Allowed("file-clone", Target{Path: path, Dir: true}) }
	for _, above := range []string{"/Users/u/proj", "/Users/u/proj/.git", "/Users/u/proj/sub", "/Users/u/proj/k/deep", "/Users/u", "/Users/u/ro", "/Users/u/ro/in"} {
		if clone(above) {
			t.Errorf("%s can be cloned with what is denied in it", above)
		}
	}
	if !clone("/Users/u/ro/other") || !p.Allowed("file-clone", file("/Users/u/proj/sub/file")) {
		t.Error("a directory without anything denied, or a file, can't be cloned")
	}
	for _, beside := range []string{"/Users/u/proj/.envrc", "/Users/u/proj/.git/config", "/Users/u/proj/k/a.pem2", "/Users/u/proj/k/x/a.pem", "/Users/u/proj/sub"} {
		for _, op := range []string{"file-read-data", "file-write-data", "file-write-unlink"} {
			if d := p.Decide(op, file(beside)); !d.Allowed {
				t.Errorf("%s on %s: %+v", op, beside, d)
			}
		}
	}
}

// TestFingerprint asks the tracker's questions, under policies that try to change the answers.
func TestFingerprint(t *testing.T) {
	name := fingerprint.Name(testSession)
	open := macPolicy(flag("/", allAccess, fs.ModeDir))
	closed := macPolicy()
	closed.Deny = []resolve.DenyPath{denial("/"), denial("/**")}
	for _, r := range []*resolve.Resolved{open, closed} {
		for _, p := range []*Profile{compile(t, r, seatbelt.Options{Session: testSession}), compileText(t, trackProfile(t, "/Users/u"))} {
			if !p.Allowed("mach-lookup", service(name+".allow")) || p.Allowed("mach-lookup", service(name+".deny")) {
				t.Error("the pair of names answers wrongly")
			}
		}
	}
	// Another session's profile and one without a session do not match.
	other := strings.Replace(testSession, "0", "1", 1)
	if text, err := fingerprint.TrackProfile(other); err != nil {
		t.Error(err)
	} else if p := compileText(t, text); !p.Allowed("mach-lookup", service(name+".deny")) {
		t.Error("another session's refuses what is not its own")
	}
	for _, s := range []string{"", other} {
		p := compile(t, open, seatbelt.Options{Session: s})
		if p.Allowed("mach-lookup", service(name+".allow")) {
			t.Errorf("session %q allows what is not its own", s)
		}
	}
}

// TestHostsProxy: a network that is limited to hosts is closed, but for the port of the session's proxy
// on localhost.
func TestHostsProxy(t *testing.T) {
	profile := func(mode resolve.NetMode, proxy uint16) *Profile {
		r := macPolicy()
		r.Net = resolve.ResolvedNet{Mode: mode}
		return compile(t, r, seatbelt.Options{Proxy: proxy})
	}
	here := func(port int) Target { return Target{Proto: "tcp", Host: "localhost", Port: port} }
	own := here(4711)
	asked := []struct {
		op string
		on Target
	}{
		{"network-outbound", here(4712)},
		{"network-outbound", here(53)},
		{"network-outbound", Target{Proto: "tcp", Host: "other", Port: 4711}},
		{"network-outbound", Target{Proto: "tcp", Host: "other", Port: 443}},
		{"network-outbound", Target{Proto: "udp", Host: "localhost", Port: 4711}},
		{"network-outbound", Target{Proto: "udp", Host: "other", Port: 53}},
		{"network-outbound", file("/private/var/run/mDNSResponder")},
		{"network-bind", Target{Proto: "tcp", Host: "localhost", Port: 4711, Local: true}},
		{"network-inbound", Target{Proto: "tcp", Host: "localhost", Port: 4711, Local: true}},
		{"mach-lookup", service("com.apple.dnssd.service")},
		{"mach-lookup", service("com.apple.trustd.agent")},
		{"mach-lookup", service("com.apple.SystemConfiguration.DNSConfiguration")},
		{"file-read-data", file("/private/var/run/resolv.conf")},
	}
	open := profile(resolve.NetOpen, 0)
	for _, c := range []struct {
		name    string
		profile *Profile
		proxy   bool
	}{
		{"no network", profile(resolve.NetNone, 4711), false},
		{"no proxy yet", profile(resolve.NetHosts, 0), false},
		{"a proxy", profile(resolve.NetHosts, 4711), true},
	} {
		if got := c.profile.Allowed("network-outbound", own); got != c.proxy || !open.Allowed("network-outbound", own) {
			t.Errorf("%s: the proxy is reached: %v", c.name, got)
		}
		for _, a := range asked {
			if c.profile.Allowed(a.op, a.on) {
				t.Errorf("%s allows %s %+v", c.name, a.op, a.on)
			}
			if !open.Allowed(a.op, a.on) {
				t.Errorf("an open network does not allow %s %+v", a.op, a.on)
			}
		}
	}
}
