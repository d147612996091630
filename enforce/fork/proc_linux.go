package fork

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/procfs"
)

// OuterPid is the number by which this process knows a child of the keeper's
// that has the number pid in the keeper's own PID namespace; 0 if it has ended.
func OuterPid(keeper, pid int) int {
	b, _ := files.ReadInto(fmt.Sprintf("/proc/%d/task/%d/children", keeper, keeper), make([]byte, 4096))
	for child := range strings.FieldsSeq(string(b)) {
		status, _ := procfs.StatusOf("/proc/" + child + "/status")
		if ids := status["NSpid"]; len(ids) > 0 && ids[len(ids)-1] == strconv.Itoa(pid) {
			outer, _ := strconv.Atoi(child)
			return outer
		}
	}
	return 0
}

// PathOf is the path of an open file of this process as the kernel knows it
// (proc_pid_fd(5)), "" if it is not known.
func PathOf(fd int) string {
	path, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return path
}
