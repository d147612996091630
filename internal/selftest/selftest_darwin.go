package selftest

import (
	"fmt"
	"os"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/libsystem"
)

func (s *scene) attack(caps enforce.Caps) ([]Proof, error) {
	if !caps.Seatbelt {
		return nil, nil
	}
	return s.attackMac(caps, askEscapes)
}

// askEscapes asks the kernel, about a confined process and about this one, whether acts are
// allowed that could do harm if they were tried.
func askEscapes(pid int) []Proof {
	var proofs []Proof
	for _, d := range []struct {
		promise, op string
		filter      libsystem.Filter
		arg         string
	}{
		{"nothing is opened by LaunchServices", "lsopen", libsystem.FilterNone, ""},
		{"no Apple events", "appleevent-send", libsystem.FilterNone, ""},
		{"no launchd jobs", "job-creation", libsystem.FilterNone, ""},
		{"no LaunchServices", "mach-lookup", libsystem.FilterGlobalName,
			"com.apple.coreservices.launchservicesd"},
		{"no keychain", "mach-lookup", libsystem.FilterGlobalName, "com.apple.SecurityServer"},
		{"no launch agents", "file-write-create", libsystem.FilterPath, "/Library/LaunchAgents/zsbx-check.plist"},
	} {
		confined := libsystem.SandboxCheck(pid, d.op, d.filter, d.arg)
		free := libsystem.SandboxCheck(os.Getpid(), d.op, d.filter, d.arg)
		detail := fmt.Sprintf("sandbox_check %s %s: %d, without restrictions %d", d.op, d.arg, confined, free)
		proof := Proof{Name: "doors", Promise: d.promise, Detail: detail}
		proof.Held = confined == libsystem.Denied && free == libsystem.Allowed
		if proof.Held {
			proof.Means = "Seatbelt"
		}
		proofs = append(proofs, proof)
	}
	return proofs
}
