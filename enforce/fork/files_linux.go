package fork

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// PathOf is the path of an open file of this process as the kernel knows it
// (proc_pid_fd(5)), "" if it is not known.
func PathOf(fd int) string {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink("/proc/self/fd/"+strconv.Itoa(fd), buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}
