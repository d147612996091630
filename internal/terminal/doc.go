// Package terminal asks on the controlling terminal (tty(4)), which a command that ran
// before may have left as it likes, with something typed ahead. It holds on every system.
//
// It knows no question, and decides nothing of an answer.
package terminal
