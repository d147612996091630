package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestScarce: threads are made before the command begins wherever it could soon use up what they
// need, or if that is unknown.
func TestScarce(t *testing.T) {
	if os.Getenv("ZSBX_TEST_SCARCE") != "" {
		if scarce() {
			os.Exit(3)
		}
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	status := func(before string) int {
		c := exec.Command("sh", "-c", before+` && exec "$0" -test.run='^TestScarce$'`, self)
		c.Env = append(os.Environ(), "ZSBX_TEST_SCARCE=1")
		out, _ := c.CombinedOutput()
		st := c.ProcessState.ExitCode()
		if st != 0 && st != 3 {
			t.Logf("%s: status %d: %s", before, st, out)
		}
		return st
	}
	if status("true") != 0 {
		t.Skip("processes or memory are scarce here anyway")
	}
	const unshare = "unshare --user --map-root-user --mount --pid --fork --mount-proc "
	namespaces := func(t *testing.T, before string) string {
		testkit.NeedProgram(t, "unshare")
		inner := unshare + "sh -c '" + before + `'`
		if err := exec.Command("sh", "-c", inner).Run(); err != nil {
			t.Skipf("%s: %v", inner, err)
		}
		line := func(before string) string {
			return unshare + "sh -c '" + before + ` && exec "$0" "$@"' "$0" -test.run='^TestScarce$'; exit; true`
		}
		if st := status(line("true")); st != 0 {
			t.Fatalf("the control: status %d", st)
		}
		return line(before)
	}
	for name, before := range map[string]func(t *testing.T) string{
		"address space": func(*testing.T) string { return "ulimit -S -v 100000000" },
		"data":          func(*testing.T) string { return "ulimit -S -d 100000000" },
		"processes": func(t *testing.T) string {
			testkit.NeedProgram(t, "prlimit")
			return "prlimit --pid $$ --nproc=1000:"
		},
		"process ids": func(t *testing.T) string {
			if major, minor := release(t); os.Geteuid() == 0 && major*100+minor < 614 {
				t.Skip("before Linux 6.14 root would change the whole machine's limit")
			}
			return namespaces(t, "echo 4000 >/proc/sys/kernel/pid_max")
		},
		"groups out of sight":    func(t *testing.T) string { return namespaces(t, "mount -t tmpfs none /sys/fs/cgroup") },
		"processes of a group":   func(t *testing.T) string { return inGroup(t, "pids", "pids.max", "1000") },
		"memory of a group (v2)": func(t *testing.T) string { return inGroup(t, "", "memory.max", "500000000") },
		"memory of a group (v1)": func(t *testing.T) string { return inGroup(t, "memory", "memory.limit_in_bytes", "500000000") },
	} {
		t.Run(name, func(t *testing.T) {
			if st := status(before(t)); st != 3 {
				t.Errorf("it is not scarce: status %d", st)
			}
		})
	}
}

// inGroup returns a line for a shell that enters a new control group with a limit.
func inGroup(t *testing.T, controller, limit, value string) string {
	parent := filepath.Join("/sys/fs/cgroup", controller)
	if _, err := os.Stat(parent + "/cgroup.procs"); err != nil {
		t.Skipf("no control groups of this version: %v", err)
	}
	group := filepath.Join(parent, "zsbx-"+strings.NewReplacer("/", "-", "(", "", ")", "").Replace(t.Name()))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no control group can be made here: %v", err)
	}
	t.Cleanup(func() { testkit.Within(testkit.Patience, func() bool { return os.Remove(group) == nil }) })
	if err := os.WriteFile(filepath.Join(group, limit), []byte(value), 0o644); err != nil {
		t.Skipf("no control group has such a limit here: %v", err)
	}
	return "echo 0 >" + group + "/cgroup.procs"
}

// release returns the kernel's version.
func release(t *testing.T) (major, minor int) {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err == nil {
		_, err = fmt.Sscanf(string(text), "%d.%d", &major, &minor)
	}
	if err != nil {
		t.Fatal(err)
	}
	return major, minor
}
