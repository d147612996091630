// Package scan kills a session that no kernel object holds: it searches the table
// of processes for those that carry the session's fingerprint and kills them,
// until two searches in a row find nothing and see nothing change.
//
// It is for macOS, whose kernel it knows only as a Table. It is pure, so it
// compiles on every system and is tested against a model of a hostile kernel. It
// does not find out who belongs to a session: Table.Probe asks the kernel, and
// Answers.Match says what the answers mean.
package scan
