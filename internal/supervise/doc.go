// Package supervise runs a command under a policy, from the first process to the last: it makes
// the private temporary directory, closes zsbx's own files to the command, decides whether it may
// start with what this machine can't enforce, confines and tracks it, enforces its limits, and ends
// and reports what it left behind. It is all of zsbx run except reading flags and printing.
// Package sandbox is the part of it for other programs.
//
// A program calls Init first in main. Nothing is printed here and nothing exits: warnings go to
// Options.Warn, and errors have types. What the kernel can't enforce is a *enforce.GapError, unless
// it was accepted by name; no command starts with less than was asked for.
package supervise
