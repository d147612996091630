// Package trace records what a command is refused, with the kernel's error. The broker sees the
// command's calls and passes them to it.
//
// The filter hands over the calls that something may refuse (package seccomp). For most of them
// the plan (package answer) says by the canonical path that they are allowed. For the others
// package trace gets the truth from the kernel. It attaches to the thread (ptrace(2),
// PTRACE_SEIZE) while its call waits, and reads the result from its registers when the call
// returns. gdb, strace and job control work as usual.
//
// It needs Linux 5.6, or macOS, where it reads the kernel's refusals from log(1); that never
// ran on a Mac. Enforcement does not depend on it, with one exception: it gives the filter's
// own refusals, by the arguments in registers. A path that another thread changes meanwhile may
// be reported wrong.
package trace
