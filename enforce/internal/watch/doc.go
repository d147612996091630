// Package watch records what a command is refused, as its broker sees it, with the
// error that the kernel gave.
//
// The filter hands over the calls that something may refuse (package seccomp). Most
// are certainly allowed, which the plan (package answer) says of the canonical path.
// Of the others the truth is had from the kernel: the thread is attached to (ptrace(2),
// PTRACE_SEIZE) while its call waits, and the result is read from its registers when the
// call returns. gdb, strace and job control are what they are without it.
//
// It is for Linux 5.6 and later, and for macOS, where log(1) says what the kernel refused;
// that never ran on a Mac. It only looks: nothing that is enforced rests on it, but for
// the refusals of the filter itself, which are given by the arguments in registers. A path
// that another thread changes meanwhile may be told wrong.
package watch
