package quiet

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/zsbx/zsbx/internal/testkit"
)

// pauses reports whether the monitor waits in this package's handler (proc_pid_syscall(5)).
func pauses() bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", os.Getpid()+1))
	return bytes.Contains(b, fmt.Appendf(nil, " %#x 0x80 ", uintptr(unsafe.Pointer(&resumed))))
}

// The monitor pauses in a new process, until Resume or by itself. Signals neither end the pause
// nor begin another one.
func TestPause(t *testing.T) {
	if end := os.Getenv("ZSBX_TEST_PAUSE"); end != "" {
		pid := uintptr(os.Getpid())
		paused := pauses()
		call(sysTgkill, pid, pid+1, uintptr(syscall.SIGURG), 0)
		for range 20 {
			if paused = paused && pauses(); !paused {
				os.Exit(0) // it is early, late, or no thread of this process
			}
		}
		if end == "Resume" {
			Resume()
		}
		ended := testkit.Within(testkit.Patience, func() bool { return !pauses() })
		call(sysTgkill, pid, pid+1, sigrtmax, 0)
		for range 20 {
			ended = ended && !pauses()
		}
		fmt.Println(ended)
		os.Exit(0)
	}
	for _, end := range []string{"Resume", "by itself"} {
		t.Run(end, func(t *testing.T) {
			paused := false
			// On a busy machine another process often gets the number of the second thread.
			for last := time.Now().Add(testkit.Patience); !paused && time.Now().Before(last); {
				c := exec.Command("/proc/self/exe", "-test.run=^TestPause$")
				c.Env = append(os.Environ(), "ZSBX_TEST_PAUSE="+end)
				out, err := c.Output()
				if err != nil || string(out) == "false\n" {
					t.Fatalf("the monitor pauses for good, or again: %s%v", out, err)
				}
				paused = string(out) == "true\n"
			}
			if !paused {
				t.Error("the monitor never paused")
			}
		})
	}
}
