// Package proc looks at processes. It says which process a number means and which are below it.
// On Linux it has descriptors with which exactly one process can be signalled. It reads proc(5)
// on Linux and sysctl(3) on macOS, without a cache. It does not know about sessions.
//
// os.Process.WithHandle opens such descriptors, too. But package os forks once to try them. If
// that fails, for example while a session has filled the process table, it signals by numbers
// from then on.
package proc
