package selftest

import (
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
)

// inChild makes system calls in a process of its own, confined by plan unless
// that is nil, whose descriptors from 0 on are files, and returns the last one's
// answer: a result, or a negative errno. The others have to succeed; the result of
// the one before the last, if there is one, becomes the last one's first argument.
func inChild(plan *enforce.Plan, files []*os.File, steps []fork.Step) (int, error) {
	// The process shares this memory, and its system call writes what it was answered.
	mem, err := unix.Mmap(-1, 0, int(unsafe.Sizeof(uintptr(0))), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return 0, fmt.Errorf("shared memory: %w", err)
	}
	defer unix.Munmap(mem)
	answer := (*uintptr)(unsafe.Pointer(&mem[0]))
	*answer = notReached
	last := len(steps) - 1
	// The keeper waits for the steps, not this process, which may have to
	// answer some of them (Plan.Mediation).
	c := &fork.Command{Path: "/", Args: []string{"/"}, Files: files, Keeper: &fork.Keeper{}}
	if plan != nil {
		if err := plan.Confine(c); err != nil {
			return 0, err
		}
	}
	first := len(c.Steps)
	c.Steps = append(c.Steps, steps...)
	c.Steps = append(c.Steps, fork.Step{Name: "exit_group(2)", Nr: unix.SYS_EXIT_GROUP})
	tried := &c.Steps[first+last]
	tried.MayFail, tried.Out = true, answer
	if last > 0 {
		tried.Back[0] = 1
	}
	proc, err := fork.Start(c)
	if err != nil {
		return 0, err
	}
	defer proc.Close()
	if _, err := ending(proc); err != nil {
		return 0, err
	}
	if *answer == notReached {
		return 0, fmt.Errorf("%s: the process ended before it", tried.Name)
	}
	return int(*answer), nil
}

// notReached is no answer of any system call's.
const notReached = ^uintptr(0) >> 1

// answerText is an answer for people.
func answerText(r int) string {
	if r >= 0 {
		return "done"
	}
	if name := unix.ErrnoName(unix.Errno(-r)); name != "" {
		return name
	}
	return fmt.Sprintf("errno %d", -r)
}

// memory is for what the arguments of steps point to. It is never given back: a
// process tests itself once.
var memory fork.Memory

// put puts v there, and gives the address.
func put[T any](v T) uintptr { return uintptr(unsafe.Pointer(fork.Put(&memory, v))) }

// call is a system call as a step.
func call(name string, nr uintptr, args ...uintptr) fork.Step {
	s := fork.Step{Name: name, Nr: nr}
	copy(s.Args[:], args)
	return s
}

// callPath is a call whose argument at is a path.
func callPath(name string, nr uintptr, path string, at int, args ...uintptr) fork.Step {
	s := call(name+" "+shorten(path), nr, args...)
	s.Args[at] = uintptr(unsafe.Pointer(memory.Text(path)))
	return s
}

// shorten leaves the last element of a path.
func shorten(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// connectSteps connect a new stream socket to an address.
func connectSteps(name string, family, addr, size uintptr) []fork.Step {
	return []fork.Step{
		call("socket(2)", unix.SYS_SOCKET, family, unix.SOCK_STREAM),
		call(name, unix.SYS_CONNECT, 0, addr, size),
	}
}
