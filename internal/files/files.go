// Package files looks at files with no more system calls than that takes, on Linux and
// macOS; elsewhere it compiles, and every call fails. It follows symbolic links as the
// kernel does, and decides nothing.
package files

import "io/fs"

// Stat is what lstat(2) tells of a file, as far as it is needed here.
type Stat struct {
	Mode            fs.FileMode
	Dev, Ino, Nlink uint64
}
