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

// Look reads what /proc/PID/stat says of a process. The state of one whose first thread
// has ended (pthread_exit(3)) is that of a thread that lives: the first is a zombie
// until the last has ended.
func Look(pid int) (Stat, error) {
	s, err := LookAt("/proc/" + strconv.Itoa(pid))
	if err == nil && s.State == "Z" && s.Threads > 1 {
		if t, ok := OtherThread(pid); ok {
			s.State = t.State
		}
	}
	return s, err
}

// LookAt reads the stat file in a directory of /proc, that of a process or a thread.
func LookAt(dir string) (Stat, error) {
	var buf [1024]byte // room for the longest line
	b, err := Read(dir+"/stat", buf[:])
	if err != nil {
		return Stat{}, err
	}
	s, err := ParseStat(b)
	if err != nil {
		err = fmt.Errorf("%s/stat: %w", dir, err)
	}
	return s, err
}

// OtherThread looks at a living thread of a process that is not its first, if there is
// one. Pid is the thread's number.
func OtherThread(pid int) (Stat, bool) {
	tasks, _ := os.ReadDir(Path(pid, "task"))
	for _, t := range tasks {
		s, err := LookAt(Path(pid, "task/"+t.Name()))
		if err == nil && s.Pid != pid && s.State != "Z" && s.State != "X" {
			return s, true
		}
	}
	return Stat{}, false
}
