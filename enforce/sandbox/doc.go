// Package sandbox runs a command under a policy, from the first process to the last: it
// confines and tracks the command, enforces its limits, and ends and reports what it left
// behind. It is zsbx run as a Go package, for programs that run commands themselves:
// editors, agents, build services.
//
// A program calls Init first in main, and then
//
//	p := policy.Merge(policy.Baseline(policy.ThisSystem()), mine)
//	result, err := sandbox.Run(ctx, p, sandbox.Options{Args: []string{"make"}, Stdout: os.Stdout})
//
// Nothing is printed here and nothing exits: warnings go to Options.Warn, and errors have
// types. What the kernel can't enforce is a *GapError, unless it was accepted by name; no
// command starts with less than was asked for.
//
// Package policy/compose composes policies from presets and files. Sessions outlive the
// program in the user's store (package track), where zsbx ps and zsbx reap find them.
//
// It is for Linux and macOS, but has never run on a Mac. It does not read flags, ask the
// user, or decide what a policy should allow.
package sandbox
