package quiet

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// policies returns the scheduling policies of this process's first and second thread
// (proc_pid_stat(5)).
func policies() (first, second string) {
	of := func(tid int) string {
		b, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", tid))
		if err != nil {
			return "none"
		}
		_, fields, _ := strings.Cut(string(b), ") ")
		return strings.Fields(fields)[38] // field 41
	}
	return of(os.Getpid()), of(os.Getpid() + 1)
}

// The runtime's monitor does not preempt, and the main thread is as it was started.
func TestCalm(t *testing.T) {
	if os.Getenv("ZSBX_TEST_POLICIES") != "" {
		fmt.Println(policies())
		os.Exit(0)
	}
	own, _ := policies()
	calmed := own != "0" // below chrt(1) nothing is changed
	// This process is calmed, too: it must not start others from a thread that its monitor made.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	main, err := unix.SchedGetAttr(os.Getpid(), 0)
	if err == nil {
		err = unix.SchedSetAttr(0, main, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine another process often gets the number of the second thread.
	for i, end := 0, time.Now().Add(testkit.Patience); i < 20 || !calmed && time.Now().Before(end); i++ {
		c := exec.Command("/proc/self/exe", "-test.run=^TestCalm$")
		c.Env = append(os.Environ(), "ZSBX_TEST_POLICIES=1")
		out, err := c.Output()
		if err != nil {
			t.Fatal(err)
		}
		first, second, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		if first != own {
			t.Fatalf("the main thread has the policy %s, and was started with %s", first, own)
		}
		calmed = calmed || second == "3"
	}
	if !calmed {
		t.Error("the monitor was never made to give way")
	}
}
