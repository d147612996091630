// Package glob reads patterns of absolute paths and matches paths with them, one
// pattern at a time or many in one walk. It is the same on every system, and does not
// look at files: a pattern may match none that exists.
package glob
