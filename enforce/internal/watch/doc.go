// Package watch records what a command is refused, as its broker sees it, with the
// error that the kernel gave.
//
// The filter hands over the calls that something may refuse (package seccomp). Most
// are certainly allowed, which the plan (package answer) says of the canonical path;
// they go on. Of the others the truth is had from the kernel: the thread is attached
// to (ptrace(2), PTRACE_SEIZE) while its call waits, the call goes on, and the
// result is read from its registers when it returns. That takes some hundred
// microseconds, and gdb, strace, job control and set-user-ID programs are what they
// are without it.
//
// On macOS the kernel says what it refuses in the system's log, with the session's
// name: log(1) is read while the command runs. Never ran on a Mac.
//
// Of Linux it is for 5.6 and later. It only looks: nothing that is enforced rests on
// it, but for the refusals of the filter itself, which are given by the arguments in
// registers. A path that another thread changes meanwhile may be told wrong; the
// error is the kernel's all the same.
package watch
