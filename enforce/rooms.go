package enforce

import (
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/enforce/internal/protect"
	"github.com/zsbx/zsbx/enforce/internal/seatbelt"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// What a Plan is made of, by the names that callers outside use. Each has its
// room below internal.
type (
	// Ruleset is the Landlock ruleset.
	Ruleset = landlock.Ruleset
	// PathError is a path of a policy that is no longer what was resolved.
	PathError = landlock.PathError
	// Filter is the seccomp filter.
	Filter = seccomp.Filter
	// MountPlan is the private mount namespace.
	MountPlan = mounts.Plan
	// Mediation is what the calling program decides while the command runs.
	Mediation = broker.Policy
	// Mediator answers the calls that a Mediation is about.
	Mediator = broker.Broker
	// PrivateDir is a directory of a MountPlan that is the command's own.
	PrivateDir = mounts.PrivateDir
	// Snapshot is how the protected set was at one time.
	Snapshot = protect.Snapshot
	// Change is a file that is not as it was.
	Change = protect.Change
	// SeatbeltOptions are what a Seatbelt profile depends on beside the policy.
	SeatbeltOptions = seatbelt.Options
	// ProfileError says which rule of a policy no profile can express.
	ProfileError = seatbelt.ProfileError
)

// HomeIn is the directory below a temporary one that becomes the home directory of
// a command which has a private one. The caller makes it.
func HomeIn(temp string) string { return mounts.HomeIn(temp) }

// ErrPathChanged is what a PathError wraps when another file is there now.
var ErrPathChanged = landlock.ErrPathChanged

// SeatbeltProfile writes the Seatbelt profile for a policy.
func SeatbeltProfile(r *policy.Resolved, o SeatbeltOptions) (string, error) {
	return seatbelt.Profile(r, o)
}
