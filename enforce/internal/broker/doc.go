// Package broker answers the system calls that a command's filter hands over
// (seccomp_unotify(2), Linux 5.6 and later for pidfd_getfd(2)): which sockets may
// be connected to and listened on where Landlock does not check them, which
// processes may be signalled where it has no scope, and whether a process outside
// exists.
//
// It acts with no more than the caller's own rights, on a copy of what was asked,
// and waits for nobody: a call that takes long keeps only its caller waiting. It
// does not decide what a filter or Landlock can.
package broker
