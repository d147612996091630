package fork

import (
	"fmt"
	"os"
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

// proveInit makes sure that this process is the init of a PID namespace: what
// kill(-1) reaches from there is all of that and nothing else. Raw.
//
//go:nosplit
//go:norace
func proveInit(j *image) {
	if call(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0) != 1 {
		quit(j, stageDomain, 0, 0)
	}
	j.mem.domain, j.mem.inner = true, true
}
