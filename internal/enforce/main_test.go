package enforce_test

import (
	"flag"
	"os"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
)

// TestMain lets the test binary be the helper that confines a command on macOS.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == fork.SandboxArg {
		os.Exit(fork.SandboxMain())
	}
	if c := enforce.Probe(); c.OS == "linux" && c.Landlock == 0 {
		// Its command is not started before Linux 5.13, and an example can't skip.
		flag.Set("test.skip", "^ExamplePlan_Confine$")
	}
	os.Exit(m.Run())
}
