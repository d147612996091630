// Package enforce turns a resolved policy into what the kernel enforces.
//
//	Probe() -> Caps                        what this machine can enforce
//	NewPlan(Resolved, Caps, Host) -> Plan  what will be enforced, and the Gaps; pure
//	Plan.Confine(*fork.Command)            the system calls that the command makes before exec
//
// On Linux a Plan has one Landlock ruleset and one seccomp filter. The forked child applies
// them to itself, never the calling process. On macOS it is a Seatbelt profile. NewPlan, the
// tables of Landlock rights, the seccomp program and the profile's text are the same code on
// every system and are tested everywhere. Kernels are called only from files named for their
// system.
//
// Nothing degrades silently: a Plan lists what it can't enforce as Gaps.
//
// Package enforce knows nothing of sessions and trackers, prints nothing, and does not decide
// which Gap is acceptable.
package enforce
