// Package track keeps sessions: one for each command, with all the processes
// that it started, however they detached themselves, so that any later
// process can find and kill them until none is left.
//
// Package track knows no policies: a program that wants nothing but reliable
// cleanup can use it alone. It prints nothing.
package track
