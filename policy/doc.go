// Package policy says what a sandboxed command may do. It holds the data
// model, decodes it from TOML and JSON, merges it, and resolves it against
// one machine, described by a Host value.
//
// The flow is
//
//	Decode and flags -> Policy -> Merge -> Resolve(Host) -> Resolved
//
// A Policy is pure data, the same on every system, and every rule in it keeps
// its Origin. A Resolved has only canonical absolute paths, the final
// environment and final limits, and answers whether an access is allowed and
// by which rule.
//
// Package policy enforces nothing: it never calls the kernel but to look at
// paths through Host, knows no Landlock, no Seatbelt and no sessions, prints
// nothing and exits nowhere.
package policy
