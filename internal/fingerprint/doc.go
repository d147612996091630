// Package fingerprint defines the fingerprint of a session on macOS, and the ways to act
// outside that every profile with one closes. A session's profile allows the lookup of one
// service name and denies that of another. No other profile answers so, and a process without a
// profile may look up both. So sandbox_check can tell from outside whether a process belongs to
// the session, however it detached itself. Nothing on the disk changes the answers, and a
// command whose own process does not give them is not started.
//
// The package writes text, and asks about one process. Package enforce puts the fingerprint
// into its profiles. Package fork checks it before a command runs. Package track looks for it,
// and starts commands with a profile of only the fingerprint and these closed ways.
package fingerprint
