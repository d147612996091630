// Package faults has only tests. They have system calls of zsbx fail, one at a
// time, over the start, the run and the end of a session, and say what came of
// each: whether the command ran confined, or was refused with a message. They also
// send signals at any moment, take resources away and spoil the records of sessions.
//
// They fail when zsbx hangs, loses output or a status, leaves processes, or has a
// command run with something open that it did not say. Linux on amd64.
package faults
