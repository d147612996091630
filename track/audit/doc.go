// Package audit writes down which commands ran and how they ended: two lines of
// JSON for each session, in one file for each day of UTC. It is the same on
// Linux and macOS. It keeps nobody from writing to the files: whoever confines
// the command keeps the directory closed to it.
package audit
