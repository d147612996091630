// Package stdio gives the command its standard input and output: the caller's own files
// if possible, and otherwise pipes or a pseudo-terminal (pty(7)). It copies between these
// and the caller's reader and writers, and counts the output if that is limited. It is
// for Linux and macOS. It does not decide when the command ends.
package stdio
