package seatbelt_test

import (
	"io/fs"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// TestSeatbeltGolden has the text of two profiles. A change of it changes what macOS enforces,
// and must be reviewed.
func TestSeatbeltGolden(t *testing.T) {
	r := macPolicy(
		flag("/Users/u/proj", allAccess, fs.ModeDir),
		flag("/bin", policy.Read|policy.Exec, fs.ModeDir),
		flag("/Users/u/notes \"q\"", policy.Read, fs.ModeDir),
		flag("/dev/null", policy.Read|policy.Write, fs.ModeDevice|fs.ModeCharDevice),
	)
	r.Deny = []resolve.DenyPath{denial("/Users/u/proj/**/.env"), denial("/Users/u/proj/.git/hooks")}
	r.Net.Unix = []resolve.Path{flag("/private/var/run/docker.sock", 0, fs.ModeSocket)}
	got, err := seatbelt.Profile(r, seatbelt.Options{Session: testSession, Terminal: "/dev/ttys003", Protect: []string{"/Users/u/proj/.zsbx.toml"}})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "full.golden", got)
	testkit.Golden(t, "track-only.golden", trackProfile(t, "/Users/u"))
}
