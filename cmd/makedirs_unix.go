//go:build unix

package cmd

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs tells whether a file belongs to the user of this process.
func ownedByUs(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid()
}
