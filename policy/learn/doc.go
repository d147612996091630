// Package learn makes proposals for a policy of what a command was refused: the
// smallest sensible set. What a preset opens is proposed as that preset, and files
// that lie together as their directory.
//
// It never proposes the home directory or what holds it, a directory that programs
// share, such as ~/.cache, /tmp or /usr, a place of secrets, or a directory that has
// one in it; nor, to write, what programs outside act upon and what may be their
// settings. What it proposes nothing for is told with the reason.
//
// It is pure, works on every system, and looks at the machine through policy.Host.
package learn
