package procfs

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Path is that of one of a process's files.
func Path(pid int, file string) string { return "/proc/" + strconv.Itoa(pid) + "/" + file }

// Read reads a file of /proc into b, or into more room where that is too small. It
// makes three system calls for most, and no entry in Go's poller. The error is an
// *os.PathError.
func Read(path string, b []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	for n := 0; ; {
		m, err := unix.Read(fd, b[n:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		case m == 0:
			return b[:n], nil
		}
		if n += m; n == len(b) {
			b = append(b, make([]byte, n)...)
		}
	}
}

// Look reads what /proc/PID/stat says of a process.
func Look(pid int) (Stat, error) {
	var buf [1024]byte // room for the longest line
	b, err := Read(Path(pid, "stat"), buf[:])
	if err != nil {
		return Stat{}, err
	}
	s, err := ParseStat(b)
	if err != nil {
		err = fmt.Errorf("%s: %w", Path(pid, "stat"), err)
	}
	return s, err
}
