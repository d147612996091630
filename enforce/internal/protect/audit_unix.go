//go:build linux || darwin

package protect

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/policy"
)

// look fills s with what lstat(2) says. The status change time can't be set
// back by whoever changed the file.
func (s *fileState) look(p string) (fs.FileMode, bool) {
	var st unix.Stat_t
	if unix.Lstat(p, &st) != nil {
		return 0, false
	}
	s.exists, s.size = true, st.Size
	s.id = policy.FileID{Dev: uint64(st.Dev), Ino: st.Ino}
	s.changed = [2]int64{int64(st.Ctim.Sec), int64(st.Ctim.Nsec)}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fs.ModeDir, true
	}
	return 0, true
}

// key is the state in a form to compare.
func (s *fileState) key(name string) string {
	return fmt.Sprint(name, s.id, s.changed, s.size)
}

// readIndex reads a file that may be anything by now.
func readIndex(name string, left *int) []byte {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	b := make([]byte, min(st.Size(), int64(max(0, *left))))
	*left -= len(b)
	n, _ := io.ReadFull(f, b)
	return b[:n]
}
