// Package landlock knows what each version of Landlock supports, turns what a policy allows
// into rules, and makes the kernel's ruleset from them
// (Documentation/userspace-api/landlock.rst). Files need Linux 5.13, TCP ports 6.7, scopes of
// signals and abstract sockets 6.12, sockets by path 7.1.
//
// It has its own constants and calls. go-landlock's package syscall has them, too, but it
// imports libcap's psx, which is C code in programs built with cgo.
//
// It has no denials, since Landlock has none. It restricts no process: the plan has the step
// that does. It ignores what Landlock does not check: stat(2), chmod(2), UDP before ABI 10.
package landlock
