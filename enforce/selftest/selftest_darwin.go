package selftest

import (
	"fmt"
	"io"
	"os"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/libsystem"
	"github.com/zsbx/zsbx/policy"
)

func selfTest(caps enforce.Caps) ([]Proof, error) {
	if !caps.Seatbelt {
		return nil, nil
	}
	out, err := macSelfTest(caps)
	if err != nil {
		return out, err
	}
	escapes, err := askEscapes(caps)
	return append(out, escapes...), err
}

// askEscapes asks the kernel about a confined process and about this one what can't
// be tried without harm: what goes through a door happens.
func askEscapes(caps enforce.Caps) ([]Proof, error) {
	h, err := policy.HostIn("/")
	if err != nil {
		return nil, err
	}
	r, err := policy.Baseline(h.OS).Resolve(h)
	if err != nil {
		return nil, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	c := &fork.Command{Path: "/bin/cat", Args: []string{"cat"}, Dir: "/", Files: []*os.File{in}}
	if err := enforce.NewPlan(r, caps, &h).Confine(c); err != nil {
		out.Close()
		return nil, err
	}
	p, err := fork.Start(c)
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("self-test of the ways to act outside: %w", err)
	}
	var proofs []Proof
	for _, d := range []struct {
		promise, op string
		filter      libsystem.Filter
		arg         string
	}{
		{"nothing is opened by LaunchServices", "lsopen", libsystem.FilterNone, ""},
		{"no Apple events", "appleevent-send", libsystem.FilterNone, ""},
		{"no launchd jobs", "job-creation", libsystem.FilterNone, ""},
		{"no LaunchServices", "mach-lookup", libsystem.FilterGlobalName, "com.apple.coreservices.launchservicesd"},
		{"no keychain", "mach-lookup", libsystem.FilterGlobalName, "com.apple.SecurityServer"},
		{"no launch agents", "file-write-create", libsystem.FilterPath, "/Library/LaunchAgents/zsbx-check.plist"},
	} {
		confined, free := libsystem.SandboxCheck(p.Pid, d.op, d.filter, d.arg), libsystem.SandboxCheck(os.Getpid(), d.op, d.filter, d.arg)
		proof := Proof{Name: "doors", Promise: d.promise, Detail: fmt.Sprintf("sandbox_check %s %s: %d, without restrictions %d", d.op, d.arg, confined, free)}
		if proof.Held = confined == libsystem.Denied && free == libsystem.Allowed; proof.Held {
			proof.Means = "Seatbelt"
		}
		proofs = append(proofs, proof)
	}
	out.Close() // cat ends
	if _, err = ending(p); err == io.EOF {
		err = nil
	}
	return proofs, err
}
