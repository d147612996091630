// Package policy says what a sandboxed command may do. It has the data model, decodes
// it from TOML and JSON, merges it, and has the rules that are built in.
//
// The flow is
//
//	Decode and flags -> Policy -> Merge -> package sandbox
//
// A Policy is pure data, the same on every system, and every rule in it keeps
// its Origin.
//
// # Files
//
// A policy file is TOML, or JSON with the same keys; docs/policy.md has them all.
//
// Decoding is strict: unknown keys are errors, and all errors are found at once, each
// with line and column.
//
// The keys are one table, in keys.go, which decoding, writing, merging, hashing and
// comparing use. How each preset is detected, the baseline and the places of secrets are
// text in internal/tables.
//
// # Paths
//
// "~" and "cwd" as the first name of a path stand for the home directory and
// the working directory; "$NAME" and "${NAME}" for variables of the caller's
// environment, which must not be empty; "${NAME:-word}" for the first absolute
// path in the variable, or else the word; "$$" for a dollar sign. A relative path is
// taken from the working directory. ".." is taken lexically. Then symbolic links are
// followed, once, when a command starts.
//
// Denials outrank every rule. They may have wildcards, as docs/policy.md describes, and may
// name what does not exist yet.
//
// # What it does not do
//
// Package policy enforces nothing, and of the machine it reads only files that are named to
// DecodeFile. It knows no Landlock, Seatbelt or sessions, and never prints or exits. It does not
// decide which files are policies, or whom to trust; OnlyTightens and Hash help those who do.
package policy
