// Package terminal asks questions on the controlling terminal (tty(4)). A command that ran
// before may have changed the terminal's settings, or typed ahead. It is for every system.
//
// The caller has the questions, and decides what an answer means.
package terminal
