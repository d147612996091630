package seatbelt_test

import (
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/fingerprint"
)

// TestTrackProfile: the profile of commands that are only tracked gives the same answers as a
// full one, and closes the doors out of a session.
func TestTrackProfile(t *testing.T) {
	for _, rel := range releases() {
		p, err := Compile(trackProfile(t, "/Users/u"), rel, nil)
		if err != nil {
			t.Fatal(err)
		}
		name := fingerprint.Name(testSession)
		if !p.Allowed("mach-lookup", service(name+".allow")) || p.Allowed("mach-lookup", service(name+".deny")) {
			t.Error("the pair of names answers wrongly")
		}
		for _, op := range fingerprint.WriteOps() {
			if !strings.HasPrefix(op, "network-") && !p.Allowed(op, file("/Users/u/x")) {
				t.Errorf("%s is refused to a command that is only tracked", op)
			}
		}
		for _, op := range []string{"lsopen", "appleevent-send"} {
			if p.Allowed(op, Target{}) {
				t.Errorf("%s is allowed", op)
			}
		}
		for _, q := range []question{
			{"file-read-data", file("/Users/u/.ssh/id")}, {"signal", Target{Process: "others"}},
			{"network-outbound", Target{Proto: "tcp", Port: 443}},
			{"mach-lookup", service("com.apple.trustd.agent")}, {"file-write-create", file("/Users/u/Library/x.plist")},
		} {
			if !p.Allowed(q.op, q.target) {
				t.Errorf("%s is refused to a command that is only tracked", q.op)
			}
		}
	}
}
