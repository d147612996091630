// Package seccomp writes the filter that refuses the system calls which no build
// needs, closes what Landlock does not look at, and hands some to the broker
// (seccomp(2), seccomp_unotify(2)). It has its own assembler, and tells what a
// filter answers, on every system; the kernel is met in one file, and any since 3.5
// will do, since 5.0 for what is handed over.
//
// It decides by numbers and arguments: what lies in memory, such as paths and
// addresses, no filter can see. It does not know what the policy allows of files.
package seccomp
