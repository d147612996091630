// Package shell writes words for a POSIX shell, as hints to type need them. It
// reads none.
package shell
