package selftest

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
)

// answers is memory that a throw-away process shares with this one, into
// which its system calls write what the kernel answered.
type answers struct {
	mem  []byte
	used int
}

func newAnswers() (*answers, error) {
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	return &answers{mem: mem}, nil
}

func (a *answers) close() { _ = unix.Munmap(a.mem) }

// next is room for one more answer.
func (a *answers) next() *uintptr {
	p := (*uintptr)(unsafe.Pointer(&a.mem[a.used]))
	a.used += int(unsafe.Sizeof(*p))
	return p
}

// inChild makes system calls in a process of its own, confined by plan unless
// that is nil, whose descriptors from 0 on are files, and returns the last one's
// answer: a result, or a negative errno. The others have to succeed; the result of
// the one before the last, if there is one, becomes the last one's first argument.
func inChild(plan *enforce.Plan, files []*os.File, steps []fork.Step) (int, error) {
	a, err := newAnswers()
	if err != nil {
		return 0, err
	}
	defer a.close()
	answer := a.next()
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
		c.Steps[first+last-1].Out = &tried.Args[0]
	}
	proc, err := fork.Start(c)
	if err != nil {
		return 0, err
	}
	defer proc.Close()
	for {
		ev, err := proc.Next()
		if err != nil {
			return 0, err
		}
		if ev.Kind == fork.Exited {
			break
		}
	}
	runtime.KeepAlive(steps)
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

// call is a system call as a step. Pointers in args are those in keep.
func call(name string, nr uintptr, keep any, args ...uintptr) fork.Step {
	s := fork.Step{Name: name, Nr: nr, Keep: keep}
	copy(s.Args[:], args)
	return s
}

// callPath is a call whose argument at is a path.
func callPath(name string, nr uintptr, path string, at int, args ...uintptr) fork.Step {
	p := append([]byte(path), 0)
	s := call(name+" "+shorten(path), nr, p, args...)
	s.Args[at] = uintptr(unsafe.Pointer(&p[0]))
	return s
}

// shorten leaves the last element of a path.
func shorten(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// connectSteps connect a new socket to an address.
func connectSteps(name string, family, kind int, addr unsafe.Pointer, size uintptr, keep any) []fork.Step {
	return []fork.Step{
		call("socket(2)", unix.SYS_SOCKET, nil, uintptr(family), uintptr(kind), 0),
		call(name, unix.SYS_CONNECT, keep, 0, uintptr(addr), size),
	}
}
