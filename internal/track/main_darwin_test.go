package track

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/zsbx/zsbx/internal/fork"
)

// TestMain lets the test binary be the helper, and commands that try to escape.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fork.SandboxArg {
		os.Exit(fork.SandboxMain())
	}
	if act := os.Getenv("ZSBX_TEST_ACT"); act != "" {
		os.Exit(escape(act))
	}
	os.Exit(m.Run())
}

// escape is a command that detaches itself. Nothing of it lives longer than a
// minute, whatever happens to the test.
func escape(act string) int {
	end, _ := strconv.ParseInt(os.Getenv("ZSBX_TEST_END"), 10, 64)
	if end == 0 {
		end = time.Now().Add(time.Minute).Unix()
		os.Setenv("ZSBX_TEST_END", strconv.FormatInt(end, 10))
	}
	if time.Now().Unix() > end {
		return 0
	}
	again := func(act string) {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "ZSBX_TEST_ACT="+act)
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = c.Start()
	}
	switch act {
	case "daemon": // detached twice, its parents gone
		again("daemon2")
	case "daemon2":
		again("sleep")
	case "sleep":
		time.Sleep(time.Until(time.Unix(end, 0)))
	case "hopper": // forks and exits, over and over
		again("hopper")
	case "many":
		for range 20 {
			again("daemon")
		}
	case "all":
		for _, a := range []string{"daemon", "hopper", "many"} {
			again(a)
		}
		time.Sleep(200 * time.Millisecond)
	}
	return 0
}
