package supervise

import (
	"math"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
)

// Go's runtime ends a program that needs one more thread and gets none. A command can use up
// all processes that its user, a control group around both, or the machine may have, and all
// memory of such a group. So this process makes its threads before the command could do that. The
// runtime keeps idle threads for later.

// How many threads a process has in the end, beside those that run Go code.
const (
	// threads are the broker's, those that wait for the keeper, signals, timers and files, the
	// runtime's own, and some for those that are about to become idle.
	threads = 32

	// frontThreads are those of Front. It waits for signals, for files and for its child.
	frontThreads = 6
)

// reserveThreads makes n threads. A thread that a goroutine is locked to serves no other.
func reserveThreads(n int) {
	var ready, done sync.WaitGroup
	stay := make(chan struct{})
	for range n + runtime.GOMAXPROCS(0) {
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

// What a command can't use up in the first 10 ms.
const (
	manyProcesses = 4096
	manyBytes     = 1 << 30
)

// scarce reports whether this process may soon get no thread any more, or whether that is unknown.
func scarce() bool {
	for _, resource := range []int{unix.RLIMIT_AS, unix.RLIMIT_DATA} {
		var limit unix.Rlimit
		if unix.Getrlimit(resource, &limit) != nil || limit.Cur != unix.RLIM_INFINITY {
			return true // this process is near it already
		}
	}
	if roomForAll() < manyProcesses {
		return true
	}
	processes, bytes := roomInGroups()
	return processes < manyProcesses || bytes < manyBytes
}

// roomForAll returns how many processes the user's limit and the machine's limits leave room for,
// or 0 if that is unknown.
func roomForAll() int {
	var all unix.Sysinfo_t
	var limit unix.Rlimit
	if unix.Sysinfo(&all) != nil || unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil {
		return 0
	}
	most := int(min(limit.Cur, math.MaxInt))
	for _, name := range []string{"pid_max", "threads-max"} {
		most = min(most, numberIn("/proc/sys/kernel/"+name, 0))
	}
	return most - int(all.Procs) // threads of all users
}

// roomInGroups returns how many processes and bytes the control groups around this process leave
// room for, or 0 if that is unknown.
func roomInGroups() (processes, bytes int) {
	own, err := files.ReadInto("/proc/self/cgroup", make([]byte, 1024))
	if err != nil {
		return 0, 0
	}
	processes = math.MaxInt
	bytes = math.MaxInt
	seen := false
	for line := range strings.Lines(string(own)) {
		_, line, _ = strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, group, _ := strings.Cut(line, ":")
		names := strings.Split(controllers, ",")
		root := "/sys/fs/cgroup"
		memory := [2]string{"memory.max", "memory.current"}
		switch {
		case controllers == "":
		case slices.Contains(names, "pids"): // version 1
			root += "/" + controllers
		case slices.Contains(names, "memory"):
			root = root + "/" + controllers
			memory = [2]string{"memory.limit_in_bytes", "memory.usage_in_bytes"}
		default:
			continue
		}
		if unix.Access(root+"/cgroup.procs", unix.F_OK) != nil { // version 2 beside version 1 has neither controller
			continue
		}
		seen = true
		if strings.HasPrefix(group, "/..") { // some of the groups can't be seen
			return 0, 0
		}
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			processes = min(processes, roomIn(root+group, "pids.max", "pids.current"))
			bytes = min(bytes, roomIn(root+group, memory[0], memory[1]))
			if group == "/" {
				break
			}
		}
	}
	if !seen {
		return 0, 0
	}
	return processes, bytes
}

// roomIn returns how much a limit of a control group leaves room for. A group without the limit
// is a root group, or has no such controller.
func roomIn(group, limit, used string) int {
	const none = math.MaxInt - 1<<20 // version 1 writes the number of pages that fit
	most := numberIn(group+"/"+limit, math.MaxInt)
	if most > none {
		return math.MaxInt
	}
	return most - numberIn(group+"/"+used, math.MaxInt)
}

// numberIn returns the number in a file, or MaxInt for "max". It returns missing for a file that
// does not exist, and 0 for one that can't be read.
func numberIn(name string, missing int) int {
	text, err := files.ReadInto(name, make([]byte, 64))
	word := strings.TrimSpace(string(text))
	n, bad := strconv.Atoi(word)
	if os.IsNotExist(err) {
		return missing
	}
	if err == nil && word == "max" {
		return math.MaxInt
	}
	if err != nil || bad != nil {
		return 0
	}
	return n
}
