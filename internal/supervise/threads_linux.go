package supervise

import (
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Go's runtime ends a program that needs one more thread and gets none. A command can use up
// all processes that its user, or a control group around both, may have. So this process makes
// its threads before the command could do that. The runtime keeps idle threads for later.

// threads is how many threads this process has in the end, beside those that run Go code: the
// broker's, those that wait for the keeper, signals, timers and files, the runtime's own, and
// some for those that are about to become idle.
const threads = 22

// reserveThreads makes the threads. A thread that a goroutine is locked to serves no other.
func reserveThreads() {
	var ready, done sync.WaitGroup
	stay := make(chan struct{})
	for range threads + runtime.GOMAXPROCS(0) {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-stay
		})
	}
	ready.Wait()
	close(stay)
	done.Wait()
}

// manyProcesses is more processes than a command can make in the first 10 ms.
const manyProcesses = 4096

// fewProcesses reports whether a command may soon use up the processes that it may have, or if
// that is unknown.
func fewProcesses() bool {
	var all unix.Sysinfo_t
	var limit unix.Rlimit
	if unix.Sysinfo(&all) != nil || unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil {
		return true
	}
	if limit.Cur < uint64(all.Procs)+manyProcesses { // all users' together
		return true
	}
	return roomInGroups() < manyProcesses
}

// roomInGroups returns how many processes the control groups around this process leave room
// for, or 0 if that is unknown.
func roomInGroups() int {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0
	}
	room := math.MaxInt
	for line := range strings.Lines(string(own)) {
		_, line, _ = strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, _ := strings.Cut(line, ":")
		root := "/sys/fs/cgroup"
		switch controllers {
		case "":
		case "pids":
			root += "/pids" // version 1
		default:
			continue
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			room = min(room, roomIn(root+group))
			if group == "/" {
				break
			}
		}
	}
	return room
}

// roomIn returns how many processes a control group leaves room for. Only a root group has no
// limit to read, or one without the controller.
func roomIn(group string) int {
	text, err := os.ReadFile(group + "/pids.max")
	most, bad := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case os.IsNotExist(err), err == nil && bad != nil: // "max"
		return math.MaxInt
	case err != nil:
		return 0
	}
	text, _ = os.ReadFile(group + "/pids.current")
	now, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return most - now
}
