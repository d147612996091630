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
	o, err := readOrder()
	if err == nil {
		err = closeOthers()
	}
	if err != nil {
		say(report{Stage: helperSetup, Message: err.Error()})
		return helperFailed
	}
	if r := confine(o); r.Stage != "" {
		say(r)
		return helperFailed
	}
	say(report{})
	var errno syscall.Errno
	err = syscall.Exec(string(o.Path), stringsOf(o.Args), stringsOf(o.Env))
	if !errors.As(err, &errno) {
		say(report{Stage: helperSetup, Message: fmt.Sprintf("executing %s: %v", o.Path, err)})
		return helperFailed
	}
	say(report{Stage: helperExec, Errno: errno})
	return helperFailed
}

// readOrder reads what is to be done.
func readOrder() (*order, error) {
	f := os.NewFile(orderFile, "orders")
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxOrder))
	if err != nil {
		return nil, fmt.Errorf("reading the orders: %w", err)
	}
	return parseOrder(b)
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
func confine(o *order) report {
	if o.Profile == "" {
		return report{}
	}
	me := os.Getpid()
	if libsystem.SandboxCheck(me, "", libsystem.FilterNone, "") == libsystem.Denied {
		return report{Stage: helperSandboxed}
	}
	if err := libsystem.SandboxInit(o.Profile); err != nil {
		return report{Stage: helperProfile, Message: err.Error()}
	}
	n := fingerprint.Name(o.Session)
	names := [2]int{
		libsystem.SandboxCheck(me, "mach-lookup", libsystem.FilterGlobalName, n+".allow"),
		libsystem.SandboxCheck(me, "mach-lookup", libsystem.FilterGlobalName, n+".deny"),
	}
	sandboxed := libsystem.SandboxCheck(me, "", libsystem.FilterNone, "")
	if err := checkFingerprint(sandboxed, names); err != nil {
		return report{Stage: helperCheck, Message: err.Error()}
	}
	return report{}
}
