package enforce

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/policy"
)

const testSession = "0f9a3c1e-5b7d-4e2a-9c11-223344556677"

// flag is a rule as the command line makes it.
func flag(p string, a policy.Access, mode fs.FileMode) policy.Path {
	return policy.Path{Path: p, Access: a, Mode: mode,
		Rule: policy.Rule{Path: p, Access: a, Origin: policy.Origin{Source: "--" + a.String()}}}
}

func macPolicy(paths ...policy.Path) *policy.Resolved {
	return &policy.Resolved{
		OS: "macos", Dir: "/Users/u/proj", Home: "/Users/u",
		TempDir: "/private/var/folders/ab/cd/T/zsbx-1",
		Paths:   paths,
		Net:     policy.ResolvedNet{Mode: policy.NetOpen},
	}
}

func TestSeatbeltProfileRefuses(t *testing.T) {
	for _, c := range []struct {
		path string
		want error
	}{
		{"/Users/u/a\nb", errControl},
		{"/Users/u/a\x00b", errControl},
		{"/Users/u/a\u0085b", errControl},
		{"/Users/u/\xff", errNotUTF8},
		{"proj", errNotAbs},
		{"/Users/u/../v", errNotClean},
		{"/Users//u", errNotClean},
	} {
		_, err := SeatbeltProfile(macPolicy(flag(c.path, policy.Read, fs.ModeDir)), SeatbeltOptions{})
		var pe *ProfileError
		if !errors.Is(err, c.want) || !errors.As(err, &pe) || pe.Origin.Source != "--ro" {
			t.Errorf("%q: %v, want %v with its origin", c.path, err, c.want)
		}
	}
	for name, o := range map[string]SeatbeltOptions{
		"session":  {Session: `x") (allow default`},
		"terminal": {Terminal: "/dev/disk0"},
	} {
		if _, err := SeatbeltProfile(macPolicy(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := SeatbeltProfile(&policy.Resolved{OS: "linux"}, SeatbeltOptions{}); err == nil {
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
		if got, err := seatbeltPath(in); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
}
