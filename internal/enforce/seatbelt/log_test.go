package seatbelt_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/resolve"
)

// TestLogged: with a message a profile means the same, and the message is in each denial of the
// policy and in the default one.
func TestLogged(t *testing.T) {
	r := macPolicy(flag("/Users/u/proj", allAccess, fs.ModeDir))
	r.Deny = []resolve.DenyPath{denial("/Users/u/proj/.env"), denial("/Users/u/proj/**/*.pem")}
	o := seatbelt.Options{Session: testSession, Protect: []string{"/Users/u/proj/.zsbx.toml"}}
	quiet := compile(t, r, o)
	o.Log = true
	loud := compile(t, r, o)
	reading, writing, _ := leaves()
	for _, p := range []string{"/Users/u/proj/x", "/Users/u/proj/.env", "/Users/u/proj/a/k.pem", "/Users/u/proj/.zsbx.toml", "/Users/u/y", "/etc/hosts"} {
		for _, op := range append(reading, writing...) {
			if a, b := quiet.Decide(op, file(p)), loud.Decide(op, file(p)); a.Allowed != b.Allowed {
				t.Errorf("%s on %s: %v, with a message %v", op, p, a.Allowed, b.Allowed)
			}
		}
	}
	text, err := seatbelt.Profile(r, o)
	message := `(with message "zsbx-` + testSession + `")`
	if err != nil || !strings.Contains(text, "\n(deny default "+message+")\n") {
		t.Errorf("the last rule has no message: %v", err)
	}
	for _, name := range []string{`/.env"`, `.zsbx.toml"`, "pem", "xpc"} {
		for part := range strings.SplitSeq(text, "\n(") {
			if strings.HasPrefix(part, "deny") && strings.Contains(part, name) && !strings.Contains(part, message) {
				t.Errorf("no message in (%s", part)
			}
		}
	}
	o.Session = ""
	if text, err := seatbelt.Profile(r, o); err != nil || strings.Contains(text, "with message") {
		t.Errorf("a message without a session: %v", err)
	}
}
