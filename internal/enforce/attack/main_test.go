package attack_test

import (
	"os"
	"testing"

	"github.com/zsbx/zsbx/internal/fork"
)

// The exit statuses of an act that did not reach the kernel.
const (
	exitNoAct = 200 + iota
	exitError
)

// TestMain lets the test binary be the confined program. If the environment names an act, it
// does that act and exits with the kernel's error number, or 0.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fork.SandboxArg {
		os.Exit(fork.SandboxMain())
	}
	if name := os.Getenv("ZSBX_TEST_ACT"); name != "" {
		os.Exit(act(name, os.Args[1:]))
	}
	os.Exit(m.Run())
}
