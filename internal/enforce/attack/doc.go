// Package attack has only tests: commands that attack what confines them, each with a control that
// does the same without zsbx.
//
// The test binary is the confined program. A file act_*_test.go has what it can try, one system call
// or a few; the others confine it under a plan and say what the kernel must answer. They are named
// for the room whose promise they try: files, net, process, signals, sockets, mounts, protect, deny,
// broker, answer, trace.
//
// It does not test decisions that are pure: those have tests in their own rooms.
package attack
