// Package faults has only tests. They make system calls of zsbx fail, one at a time,
// during the start, the run and the end of a session. After each they check whether the
// command ran confined, or was refused with a message. They also send signals at any
// moment, take away resources, and damage the records of sessions.
//
// They fail if zsbx hangs, loses output or a status, leaves processes, or runs a command
// with something open that it did not report. They are for Linux on amd64.
package faults
