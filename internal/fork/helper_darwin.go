package fork

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/libsystem"
)

// The helper's descriptors besides 0, 1 and 2.
const (
	orderFile  = 3
	reportFile = 4
)

const (
	helperFailed = 125
	maxOrder     = 64 << 20 // bytes
)

func sandboxMain() int {
	runtime.LockOSThread()
	reports := os.NewFile(reportFile, "reports")
	say := func(r report) {
		if b, err := json.Marshal(r); err == nil {
			_, _ = reports.Write(append(b, '\n'))
		}
	}
	syscall.CloseOnExec(reportFile)
	b, env, err := readOrders()
	if err == nil {
		err = closeOthers()
	}
	if err != nil {
		err = fmt.Errorf("preparing the sandbox: %w", err)
	} else {
		err = confine(&b)
	}
	if err != nil {
		say(report{Message: err.Error()})
		return helperFailed
	}
	say(report{})
	err = syscall.Exec(os.Args[2], os.Args[3:], env)
	var errno syscall.Errno
	if errors.As(err, &errno) {
		say(report{Errno: errno})
	} else {
		say(report{Message: err.Error()})
	}
	return helperFailed
}

// readOrders reads the helper's orders.
func readOrders() (Sandbox, []string, error) {
	f := os.NewFile(orderFile, "orders")
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxOrder))
	if err != nil {
		return Sandbox{}, nil, fmt.Errorf("reading the orders: %w", err)
	}
	if len(os.Args) < 4 {
		return Sandbox{}, nil, errors.New("no command was given")
	}
	return parseOrders(string(text))
}

// closeOthers marks all descriptors above 2 close-on-exec, since no profile checks what is
// already open. /dev/fd (fd(4)) lists them.
func closeOthers() error {
	d, err := os.Open("/dev/fd")
	if err != nil {
		return fmt.Errorf("listing open files: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("listing open files: %w", err)
	}
	for _, n := range names {
		if fd, err := strconv.Atoi(n); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// NoSandbox returns why this process can't get a Sandbox, or "". Only macOS has it.
func NoSandbox() string {
	switch libsystem.SandboxCheck(os.Getpid(), "", libsystem.FilterNone, "") {
	case libsystem.Allowed:
		return ""
	case libsystem.Denied:
		return "this process runs in a sandbox already, and macOS can't nest them"
	}
	return "sandbox_check gives no answer"
}

// confine applies the profile and proves that it works. Otherwise two kinds of mistake would
// not be noticed before the session must be reaped: a profile with another meaning, and a call
// with its arguments in the wrong place.
func confine(b *Sandbox) error {
	if b.Profile == "" {
		return nil
	}
	if why := NoSandbox(); why != "" {
		return errors.New(why)
	}
	if err := libsystem.SandboxInit(b.Profile); err != nil {
		return fmt.Errorf("macOS refused the profile: %w", err)
	}
	if err := checkFingerprint(fingerprint.Ask(os.Getpid(), b.Session)); err != nil {
		return fmt.Errorf("the profile does not do what it says: %w", err)
	}
	return nil
}
