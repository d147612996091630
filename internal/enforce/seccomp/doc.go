// Package seccomp writes the filter (seccomp(2)). The filter refuses system calls that no build
// needs, closes what Landlock does not check, and hands some calls to the broker
// (seccomp_unotify(2)). The package has its own assembler and can say what a filter answers, on
// every system. Only filter_linux.go calls the kernel. Filters need Linux 3.5, handing calls
// over needs 5.0.
//
// A filter decides by numbers and arguments. It can't see memory, such as paths and addresses.
// It does not know which files the policy allows.
package seccomp
