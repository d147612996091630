// Package broker answers the system calls that a command's filter hands over
// (seccomp_unotify(2)). It decides which sockets may be connected to and listened on where
// Landlock does not check them, gives a session without network sockets of its own network,
// decides which processes may be signalled where Landlock has no scope for signals, and says
// whether a process outside exists. It needs pidfd_getfd(2), which came with Linux 5.6.
//
// The broker acts with at most the caller's rights, and on a copy of the arguments. A slow call
// delays only its caller. The broker does not decide what a filter or Landlock can decide.
package broker
