// Package learn proposes rules for what a command was refused: the smallest sensible
// set. It proposes a preset for what that opens, and a directory for files that are
// together.
//
// It never proposes the home directory or one above it, a directory that programs
// share, such as ~/.cache, /tmp or /usr, a place of secrets, or a directory that has
// one in it. It never proposes to write what programs outside act upon, or what may be
// their settings. Needs without a proposal are returned with the reason.
//
// It is pure, works on every system, and looks at the machine through policy.Host.
package learn
