// Package why makes a report of what a command was refused: what is one thing for a
// person is one entry, the likely cause comes first, and each entry has what to type
// unless it is a place of secrets or the system's.
//
// It is pure, and knows what package enforce has recorded (Plan.Refusals): on Linux
// from the system calls, on macOS from the log. It does not print.
package why
