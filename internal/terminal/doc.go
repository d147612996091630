// Package terminal asks on the controlling terminal (tty(4)), which a command that ran
// before may have left as it likes, with something typed ahead.
package terminal
