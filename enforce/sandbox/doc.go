// Package sandbox runs a command under a policy, from the first process to the
// last: it makes the private temporary directory, closes zsbx's own files to the
// command, decides whether it may start with what this machine can't enforce,
// confines and tracks it, keeps its limits, and ends and reports what it left
// behind. It is the whole of zsbx run but for reading flags and printing, for
// programs that run commands themselves: editors, agents, build services.
//
// A program calls Init first of all in main, and then
//
//	p := policy.Merge(policy.Baseline("linux"), mine)
//	result, err := sandbox.Run(ctx, p, sandbox.Options{Args: []string{"make"}, Stdout: os.Stdout})
//
// Nothing is printed here and nothing exits: warnings go to Options.Warn, and
// errors have types. What the kernel can't enforce is an *enforce.GapError, unless
// it was accepted by name; no command starts with less than was asked for.
//
// On Linux and macOS; it has never run on a Mac. It composes no policy (package
// policy/compose) and plans none (package enforce), and sessions outlive it in the
// user's store (package track), where zsbx ps and zsbx reap find them.
package sandbox
