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

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/enforce/libsystem"
)

// The helper's descriptors beside 0, 1 and 2.
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
	} else if err = confine(&b); err == nil {
		say(report{})
		var errno syscall.Errno
		if err = syscall.Exec(os.Args[2], os.Args[3:], env); errors.As(err, &errno) {
			say(report{Errno: errno})
			return helperFailed
		}
	}
	say(report{Message: err.Error()})
	return helperFailed
}

// readOrders reads what is to be done.
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

// closeOthers marks all descriptors above 2: what is open is not looked at by
// any profile. /dev/fd (fd(4)) lists them.
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

// confine puts the profile on and proves that it is on. Two kinds of mistake
// would otherwise go unseen until a session is to be reaped: a profile that
// means something else, and a call that puts its arguments in the wrong place.
func confine(b *Sandbox) error {
	if b.Profile == "" {
		return nil
	}
	me := os.Getpid()
	if libsystem.SandboxCheck(me, "", libsystem.FilterNone, "") == libsystem.Denied {
		return errors.New("already running in a sandbox: macOS can't nest them")
	}
	if err := libsystem.SandboxInit(b.Profile); err != nil {
		return fmt.Errorf("macOS refused the profile: %w", err)
	}
	n := fingerprint.Name(b.Session)
	names := [2]int{
		libsystem.SandboxCheck(me, "mach-lookup", libsystem.FilterGlobalName, n+".allow"),
		libsystem.SandboxCheck(me, "mach-lookup", libsystem.FilterGlobalName, n+".deny"),
	}
	sandboxed := libsystem.SandboxCheck(me, "", libsystem.FilterNone, "")
	if err := checkFingerprint(sandboxed, names); err != nil {
		return fmt.Errorf("the profile does not do what it says: %w", err)
	}
	return nil
}
