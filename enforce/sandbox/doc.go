// Package sandbox runs a command under a policy, from the first process to the
// last: it makes the private temporary directory, closes zsbx's own files to the
// command, decides whether it may start with what this machine can't enforce,
// confines and tracks it, enforces its limits, and ends and reports what it left
// behind. It is all of zsbx run except reading flags and printing. Programs that run
// commands themselves can use it: editors, agents, build services.
//
// A program calls Init first in main, and then
//
//	p := policy.Merge(policy.Baseline("linux"), mine)
//	result, err := sandbox.Run(ctx, p, sandbox.Options{Args: []string{"make"}, Stdout: os.Stdout})
//
// Nothing is printed here and nothing exits: warnings go to Options.Warn, and
// errors have types. What the kernel can't enforce is an *GapError, unless
// it was accepted by name; no command starts with less than was asked for.
//
// It is for Linux and macOS, but has never run on a Mac. Package policy/compose composes
// policies, and package enforce plans them. Sessions outlive it in the user's store
// (package track), where zsbx ps and zsbx reap find them.
package sandbox
