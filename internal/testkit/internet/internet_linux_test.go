package internet

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/testkit"
)

func TestMain(m *testing.M) {
	Inside()
	os.Exit(m.Run())
}

// TestCommand: a command has names and files of its own, and its exit status is the command's.
func TestCommand(t *testing.T) {
	o := Options{Dir: t.TempDir(), Resolv: "search corp.local", Hosts: "203.0.113.5 five.example"}
	c, err := Command(o, "sh", "-c", "getent hosts four.example five.example; cat /etc/resolv.conf; exit 7")
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.CombinedOutput()
	exit, is := err.(*exec.ExitError)
	if !is || exit.ExitCode() == failed {
		testkit.Lacks(t, testkit.UserNS, err, ": ", string(out))
	}
	log, err := os.ReadFile(o.Log())
	if err != nil {
		t.Fatal(err)
	}
	if exit.ExitCode() != 7 || !strings.Contains(string(out), "203.0.113.80") || !strings.Contains(string(out), "203.0.113.5 ") ||
		!strings.Contains(string(out), "search corp.local") || !strings.Contains(string(log), "dns four.example A at 203.0.113.1") {
		t.Errorf("%v\n%s\n%s", exit, out, log)
	}
}
