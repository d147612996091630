// Package why makes a report of what a command was refused. Refusals that are one thing to a
// person are one entry, and the likely cause comes first. Each entry says what to type, unless
// it is about secrets or places of the system.
//
// It is pure and does not print. It uses what package enforce recorded (Plan.Refusals): on
// Linux from system calls, on macOS from the log.
package why
