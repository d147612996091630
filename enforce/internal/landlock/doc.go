// Package landlock says what the versions of Landlock know, turns what a policy
// allows into rules, and makes the kernel's ruleset of them
// (Documentation/userspace-api/landlock.rst): files from Linux 5.13 on, TCP
// ports from 6.7, scopes of signals and abstract sockets from 6.12, sockets by
// path from 7.1.
//
// The constants and calls are its own: go-landlock's package syscall has them, but
// brings libcap's psx along, which is C wherever a program is built with cgo.
//
// It knows no denials, since Landlock has none, and restricts no process: the
// one step that does stands in the plan. What Landlock does not mediate (stat(2),
// chmod(2), UDP before ABI 10) is not its business.
package landlock
