package track

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestBombs starts fork bombs, in a PID namespace with a limit.
func TestBombs(t *testing.T) {
	for _, k := range []Kind{Domain, Subtree} {
		for _, bomb := range []string{"bomb", "bombsetsid", "bombhop"} {
			t.Run(string(k)+"/"+bomb, func(t *testing.T) {
				if k == Domain {
					requireDomain(t)
				}
				out, err := inNamespace(t, "bombhost", string(k), bomb, strconv.Itoa(rounds(t)))
				if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.ExitCode() == 77 {
					testkit.Lacks(t, testkit.UserNS, out)
				}
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				t.Log(out)
			})
		}
	}
}

// inNamespace runs a helper as the init of a PID namespace, in a user namespace or, as root,
// without one. As root the helper becomes an ordinary user, since limits on processes do not
// apply to root.
func inNamespace(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	c := exec.Command("/proc/self/exe", args...)
	c.Env = append(os.Environ(), helperEnv+"="+name)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	} else {
		c.Env = append(c.Env, "BECOME=65534")
	}
	var out strings.Builder
	c.Stdout, c.Stderr, c.WaitDelay = &out, &out, 5*time.Second
	err := c.Start()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		testkit.Lacks(t, testkit.UserNS, "no PID namespace: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(2*testkit.Patience, func() { _ = c.Process.Kill() }).Stop()
	err = c.Wait()
	return out.String(), err
}
