// Package glob reads patterns of absolute paths and matches paths with them, one
// pattern at a time or many in one walk. It is the same on every system and looks at
// no files: a pattern need not name anything.
package glob
