// Package enforce turns a resolved policy into what the kernel enforces.
//
//	Probe() -> Caps                        what this machine can enforce
//	NewPlan(Resolved, Caps, Host) -> Plan  what will be enforced, and the Gaps; pure
//	Plan.Confine(*fork.Command)            the system calls that the command makes before exec
//
// On Linux a Plan is one Landlock ruleset and one seccomp filter, put on in
// the forked child, never on the calling process. On macOS it is a Seatbelt
// profile. NewPlan, the tables of Landlock rights, the seccomp program and the
// profile's text are the same code on every system and are tested everywhere;
// the kernel is touched in the files named for it.
//
// Nothing degrades silently: what a Plan cannot enforce is listed as a Gap.
//
// Package enforce knows nothing of sessions and trackers, prints nothing and
// decides nothing about which Gap is acceptable.
package enforce
