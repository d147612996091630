// Package units reads and writes times, sizes and numbers of processors as policies
// and flags have them. It is the same on every system.
package units
