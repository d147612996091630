// Package shell quotes words for a POSIX shell, for hints that users type. It parses
// nothing.
package shell
