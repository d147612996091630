package cmd

import (
	"bytes"

	"golang.org/x/sys/unix"
)

// dirFlags are the flags that a file system gives a directory by itself:
// FS_INDEX_FL, FS_EXTENT_FL and FS_INLINE_DATA_FL of linux/fs.h.
const dirFlags = 0x1000 | 0x80000 | 0x10000000

// isPlain reports whether a directory has no attributes (xattr(7), ACLs among
// them) but the labels of security modules, and no flags of its owner's
// (FS_IOC_GETFLAGS(2const)): synchronous writing, ignored case and the like.
func isPlain(fd int) bool {
	buf := make([]byte, 256) // more than that has more than labels
	n, err := unix.Flistxattr(fd, buf)
	if err != nil && err != unix.ENOTSUP {
		return false
	}
	for name := range bytes.SplitSeq(buf[:max(n, 0)], []byte{0}) {
		if len(name) > 0 && !bytes.HasPrefix(name, []byte("security.")) {
			return false
		}
	}
	flags, err := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
	return err != nil || flags&^dirFlags == 0
}
