package fork

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OuterPid is the number by which this process knows a child of the keeper's
// that has the number pid in the keeper's own PID namespace; 0 if it has ended.
func OuterPid(keeper, pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", keeper, keeper))
	for child := range strings.FieldsSeq(string(b)) {
		status, err := os.ReadFile("/proc/" + child + "/status")
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			ids, ok := strings.CutPrefix(line, "NSpid:")
			if !ok {
				continue
			}
			var outer int
			if f := strings.Fields(ids); f[len(f)-1] == fmt.Sprint(pid) {
				_, _ = fmt.Sscan(child, &outer)
				return outer
			}
		}
	}
	return 0
}

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
