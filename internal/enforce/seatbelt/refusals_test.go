package seatbelt_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

const testSession = "0f9a3c1e-5b7d-4e2a-9c11-223344556677"

// flag returns a rule as from the command line.
func flag(p string, a policy.Access, mode fs.FileMode) resolve.Path {
	return resolve.Path{Path: p, Access: a, Mode: mode,
		Rule: policy.Rule{Path: p, Access: a, Origin: policy.Origin{Source: "--" + a.String()}}}
}

func macPolicy(paths ...resolve.Path) *resolve.Resolved {
	const temp = "/private/var/folders/ab/cd/T/zsbx-1"
	return &resolve.Resolved{
		OS: "macos", Dir: "/Users/u/proj", Home: "/Users/u", TempDir: temp,
		Paths: append(paths[:len(paths):len(paths)], flag(temp, allAccess, fs.ModeDir)),
		Net:   resolve.ResolvedNet{Mode: resolve.NetOpen},
	}
}

func TestSeatbeltProfileRefuses(t *testing.T) {
	for _, c := range []struct {
		path, want string
	}{
		{"/Users/u/a\nb", "control character"},
		{"/Users/u/a\x00b", "control character"},
		{"/Users/u/a\u0085b", "control character"},
		{"/Users/u/\xff", "UTF-8"},
		{"proj", "not an absolute path"},
		{"/Users/u/../v", `".." element`},
		{"/Users//u", `".." element`},
	} {
		_, err := seatbelt.Profile(macPolicy(flag(c.path, policy.Read, fs.ModeDir)), seatbelt.Options{})
		var pe *seatbelt.ProfileError
		if !errors.As(err, &pe) || !strings.Contains(err.Error(), c.want) || pe.Origin.Source != "--ro" {
			t.Errorf("%q: %v, want %v with its origin", c.path, err, c.want)
		}
	}
	for name, o := range map[string]seatbelt.Options{
		"session":  {Session: `x") (allow default`},
		"terminal": {Terminal: "/dev/disk0"},
	} {
		if _, err := seatbelt.Profile(macPolicy(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := seatbelt.Profile(&resolve.Resolved{OS: "linux"}, seatbelt.Options{}); err == nil {
		t.Error("a policy for linux was written")
	}
}

func TestSeatbeltPath(t *testing.T) {
	for in, want := range map[string]string{
		"/":                                "/",
		"/tmp":                             "/private/tmp",
		"/tmpx":                            "/tmpx",
		"/var/folders/a/":                  "/private/var/folders/a",
		"/etc/hosts":                       "/private/etc/hosts",
		"/System/Volumes/Data/Users/u":     "/Users/u",
		"/System/Volumes/Data/private/tmp": "/private/tmp",
		"/System/Volumes/Data/home/x":      "/System/Volumes/Data/home/x",
		"/System/Volumes/Data":             "/System/Volumes/Data",
		"/home/x":                          "/System/Volumes/Data/home/x",
		"/usr/local/bin":                   "/usr/local/bin",
	} {
		if got, err := seatbelt.Path(in); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
}

// TestLinkIsReadable: a link on the way to an allowed path can be followed.
func TestLinkIsReadable(t *testing.T) {
	l := flag("/opt/data", policy.Read, fs.ModeDir)
	l.Written, l.Links = "/Users/u/data/x", []string{"/Users/u/data"}
	p := compile(t, macPolicy(l), seatbelt.Options{Session: testSession})
	if !p.Allowed("file-read-metadata", file("/Users/u/data")) || p.Allowed("file-read-data", file("/Users/u/data")) {
		t.Error("the link cannot be followed, or more than that")
	}
}

// TestUnixNamed: a named socket is open, and with a named directory all sockets in it.
func TestUnixNamed(t *testing.T) {
	r := macPolicy(flag("/Users/u/proj", allAccess, fs.ModeDir))
	r.Net = resolve.ResolvedNet{Mode: resolve.NetNone, Unix: []resolve.Path{
		flag("/Users/u/proj/one.sock", 0, fs.ModeSocket), flag("/Users/u/proj/run", 0, fs.ModeDir),
	}}
	p := compile(t, r, seatbelt.Options{})
	for f, want := range map[string]bool{
		"/Users/u/proj/one.sock": true, "/Users/u/proj/one.sock/x": false, "/Users/u/proj/two.sock": false,
		"/Users/u/proj/run/a.sock": true, "/Users/u/proj/running": false, "/Users/u/run/a.sock": false,
	} {
		if got := p.Allowed("network-outbound", file(f)); got != want {
			t.Errorf("%s: %v", f, got)
		}
	}
	if p.Allowed("mach-lookup", service("com.apple.dnssd.service")) || p.Allowed("system-socket", service("AF_INET")) || !p.Allowed("system-socket", service("AF_UNIX")) {
		t.Error("without a network names are looked up, or no socket can be made at all")
	}
}
