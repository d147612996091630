// Package scan kills a session that no kernel object contains. It searches the process table
// for processes with the session's fingerprint and kills them, until two searches in a row find
// nothing and see no change.
//
// It is for macOS, but it sees the kernel only as a Table. So it is pure, compiles on every
// system, and is tested with a model of a hostile kernel. Table.Probe asks the kernel whether a
// process belongs to the session. Answers.Match interprets the answers.
package scan
