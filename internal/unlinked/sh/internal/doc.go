// Package internal is empty: tests of the parser for shells name it, and go mod tidy looks for
// it.
package internal
