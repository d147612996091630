// Package stdio is what the command has as standard input and output: the caller's own
// files where that is possible, and else pipes or a pseudo-terminal (pty(7)) from
// which it carries to the caller's reader and writers, counting where there is a
// limit. Linux and macOS. When the command ends is decided elsewhere.
package stdio
