// Package learn proposes rules for what a command was refused: the smallest sensible
// set. It proposes a preset for what that opens, and a directory for files that are
// together. Every hint of zsbx that opens something comes from it: Open, Ask, Program and
// Keep answer one question, Propose and Rules are for all that a command was refused.
//
// It never proposes the home directory or one above it, a directory above the project, one
// that programs share, such as ~/.cache, /tmp or /usr, a place of secrets, or a directory
// that has one in it. It never proposes to write what programs outside run or trust, what may
// be their settings, what is on PATH, or another project and its programs. Needs without a
// proposal are returned with the reason.
//
// It is pure, works on every system, and looks at the machine through host.Host.
package learn
