// Package units parses times, sizes, ports and numbers of processors as policies and flags
// have them, and writes sizes. It is the same on every system.
package units
