package fork

import (
	"errors"
	"os"
	"reflect"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

const (
	floodIdle = 2000 // children that the keeper has to skip each time it reaps one
	floodBy   = 6    // processes that make children which end at once
	floodMost = 4000 // limit for all of them, reaped or not
	floodUser = 61234
)

// boundFlood limits the processes of its user (RLIMIT_NPROC). The limit does not apply to root,
// so root becomes another user.
func boundFlood() {
	if os.Getuid() == 0 {
		if syscall.Setgid(floodUser) != nil || syscall.Setuid(floodUser) != nil {
			os.Exit(5)
		}
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) == nil {
		limit.Max = min(limit.Max, floodMost) // it may be lower here
	}
	limit.Cur = limit.Max
	if unix.Setrlimit(unix.RLIMIT_NPROC, &limit) != nil {
		os.Exit(6)
	}
}

// floodHelper gives its parent, the keeper, more children than it can reap, for a time. They
// end by themselves a little later.
func floodHelper(life string) {
	d, err := time.ParseDuration(life)
	if err != nil {
		os.Exit(3)
	}
	boundFlood()
	end := time.Now().Add(d)
	ts := unix.NsecToTimespec(int64(d + time.Second))
	for range floodIdle {
		if call(unix.SYS_CLONE, unix.CLONE_PARENT|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0) == 0 {
			call(unix.SYS_PPOLL, 0, 0, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
			exit(0)
		}
	}
	for range floodBy {
		_, err := os.StartProcess("/proc/self/exe", []string{"flood"}, &os.ProcAttr{
			Env: []string{"FORK_TEST_FLOOD_UNTIL=" + strconv.FormatInt(end.UnixNano(), 10)},
			Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_PARENT},
		})
		if err != nil && !errors.Is(err, syscall.EAGAIN) { // else the limit is reached
			os.Exit(4)
		}
	}
	for time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(7)
}

// floodUntil makes children of the keeper that end at once.
func floodUntil(end string) {
	n, _ := strconv.ParseInt(end, 10, 64)
	const flags = unix.CLONE_PARENT | unix.CLONE_VFORK | unix.CLONE_VM
	var m Memory
	mem := Put(&m, keeperMem{})
	j := Put(&m, image{mem: mem}) // one that is not the keeper's child ends
	for time.Now().UnixNano() < n {
		rawClone(flags|uintptr(unix.SIGCHLD), mem.stack.top(), reflect.ValueOf(runChild).Pointer(), j, roleCommand)
	}
	os.Exit(0)
}

// TestLimitInFlood: a keeper that gets more children than it can reap still enforces the time
// limit. The control is the same command without a limit, which runs as long as it likes.
func TestLimitInFlood(t *testing.T) {
	const life = testkit.Patience
	start := func(l Limit, life time.Duration) *Process {
		env := append(os.Environ(), "FORK_TEST_FLOOD="+life.String())
		p, err := Start(&Command{Path: "/proc/self/exe", Args: []string{"flood"}, Env: env, Keeper: &Keeper{}, Limit: l})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if ws, _ := finish(t, start(Limit{}, 100*time.Millisecond)); ws.ExitStatus() != 7 {
		t.Fatalf("the control ended with %#x", int(ws))
	}
	p := start(Limit{Time: 500 * time.Millisecond, Kill: time.Second}, life)
	if ws, _ := finish(t, p); !ws.Signaled() {
		t.Errorf("the command lived as long as it liked: %#x", int(ws))
	}
}
