package enforce

import (
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/protect"
	"github.com/zsbx/zsbx/enforce/internal/seatbelt"
	"github.com/zsbx/zsbx/policy"
)

// What a Plan is made of, by the names that callers outside use. Each has its
// room below internal.
type (
	// Mediator answers the calls that a Mediation is about.
	Mediator = broker.Broker
	// Snapshot is how the protected set was at one time.
	Snapshot = protect.Snapshot
	// Change is a file that is not as it was.
	Change = protect.Change
	// SeatbeltOptions are what a Seatbelt profile depends on beside the policy.
	SeatbeltOptions = seatbelt.Options
)

// SeatbeltProfile writes the Seatbelt profile for a policy.
func SeatbeltProfile(r *policy.Resolved, o SeatbeltOptions) (string, error) {
	return seatbelt.Profile(r, o)
}
