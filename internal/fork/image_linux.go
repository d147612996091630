package fork

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/nofile"
)

// image has all that the new processes read. It is complete before the fork. It is in the
// command's Memory, with all that it points to. What the processes write, and what a keeper
// needs later, is in mem.
type image struct {
	path       *byte
	argv, envp **byte
	before     []Step // Command.before
	steps      []Step // Command.steps

	peer       int32   // the caller's end of the connection
	domain     bool    // Keeper.Domain
	namespaces uintptr // Command.Namespaces
	caller     uintptr // the caller's pid; a keeper in its domain must be unable to signal it
	mem        *keeperMem

	run     uintptr   // runChild
	sigmask [1]uint64 // the caller's signal mask, for the command

	keeperStack uintptr // the end of the keeper's stack

	nofile uintptr // RLIMIT_NOFILE, the highest number that a descriptor can have
}

// role says what a new process is.
type role uintptr

const (
	roleCommand role = iota // becomes the command
	roleKeeper              // starts the command and keeps it
)

// newImage makes the image of c, and the memory that all processes of a start share.
func newImage(c *Command) (*image, error) {
	if len(c.Files) > 3 {
		return nil, fmt.Errorf("%d files given, but only descriptors 0 to 2 can be set", len(c.Files))
	}
	if c.Namespaces != 0 && c.Keeper == nil {
		return nil, errors.New("namespaces need a keeper")
	}
	for _, s := range slices.Concat([]string{c.Path, c.Dir}, c.Args, c.Env) {
		if strings.IndexByte(s, 0) >= 0 {
			return nil, fmt.Errorf("%q contains a NUL byte", s)
		}
	}
	m := c.Memory()
	j := Put(m, image{
		path: m.Text(c.Path), argv: m.texts(c.Args), envp: m.texts(c.Env),
		namespaces: c.Namespaces, caller: uintptr(os.Getpid()), run: reflect.ValueOf(runChild).Pointer(),
	})
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		j.nofile = uintptr(min(lim.Cur, 1<<20))
	}
	size := int(unsafe.Sizeof(keeperMem{}))
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory for the new processes: %w", err)
	}
	j.mem = (*keeperMem)(unsafe.Pointer(&mem[0]))
	j.keeperStack = j.mem.stack.top()
	j.mem.conn = -1
	j.mem.held = -1
	j.mem.stateFile = -1
	j.mem.cgroupKill = -1
	j.mem.terminal = -1
	j.mem.sockets.conn = -1
	c.before = c.Before
	c.steps = append(c.setupSteps(), c.Steps...)
	if c.Keeper != nil {
		j.setKeeper(c, c.Keeper)
	}
	j.before = PutSlice(m, c.before)
	j.steps = PutSlice(m, c.steps)
	return j, m.err
}

// setupSteps returns the steps that set the command's working directory, files, limit of open
// files and terminal (ioctl_tty(2), TIOCSCTTY). The limit is the one that this process was
// started with, before Go's runtime raised it. A file whose descriptor would be overwritten
// before its turn is first duplicated to another descriptor.
func (c *Command) setupSteps() (steps []Step) {
	m := c.Memory()
	if c.Dir != "" {
		dir := uintptr(unsafe.Pointer(m.Text(c.Dir)))
		steps = append(steps, Step{Name: "chdir to " + c.Dir, Nr: unix.SYS_CHDIR, Args: [6]uintptr{dir}})
	}
	moved := make(map[int]int) // where in steps
	for i, f := range c.Files {
		if f != nil && int(f.Fd()) < i {
			moved[i] = len(steps)
			args := [6]uintptr{f.Fd(), unix.F_DUPFD_CLOEXEC, 10}
			steps = append(steps, Step{Name: "fcntl(F_DUPFD_CLOEXEC)", Nr: unix.SYS_FCNTL, Args: args})
		}
	}
	for i, f := range c.Files {
		if f == nil {
			continue
		}
		s := Step{Name: "dup3(2)", Nr: unix.SYS_DUP3, Args: [6]uintptr{f.Fd(), uintptr(i)}}
		if at, is := moved[i]; is {
			s.Back[0] = uint32(len(steps) - at)
		} else if int(f.Fd()) == i {
			s = Step{Name: "fcntl(F_SETFD)", Nr: unix.SYS_FCNTL, Args: [6]uintptr{f.Fd(), unix.F_SETFD, 0}}
		}
		steps = append(steps, s)
	}
	if soft, hard, known := nofile.AtStart(); known && soft != hard {
		limit := Put(m, unix.Rlimit{Cur: soft, Max: hard})
		args := [6]uintptr{0, unix.RLIMIT_NOFILE, uintptr(unsafe.Pointer(limit))}
		steps = append(steps, Step{Name: "prlimit(2)", Nr: unix.SYS_PRLIMIT64, MayFail: true, Args: args})
	}
	if c.Terminal {
		steps = append(steps, Step{Name: "setsid(2)", Nr: unix.SYS_SETSID},
			Step{Name: "ioctl(TIOCSCTTY)", Nr: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.TIOCSCTTY, 0}})
	}
	return steps
}

// forEver is a time in nanoseconds that can be added to another without overflow.
const forEver = 1 << 61

func (j *image) setKeeper(c *Command, k *Keeper) {
	c.before = slices.Concat(j.mem.setupSteps(), c.Before, k.Steps)
	j.domain = k.Domain
	j.mem.keep = k.Keep
	j.mem.inner = c.Namespaces&unix.CLONE_NEWPID != 0
	j.mem.limit = min(int64(c.Limit.Time), forEver)
	j.mem.killAfter = min(int64(c.Limit.Kill), forEver)
	if k.State != nil {
		j.mem.stateFile = int32(k.State.Fd())
	}
	if k.CgroupKill != nil {
		j.mem.cgroupKill = int32(k.CgroupKill.Fd())
	}
	if c.Sockets != nil {
		j.mem.sockets.prepare(int(c.Sockets.Fd()), c.AllLocal)
	}
	if r := c.Restore; r != nil {
		j.mem.terminal = int32(r.Terminal.Fd())
		j.mem.settings = r.Before
		j.mem.changed = r.Then
	}
}

// setupSteps returns the steps that make a process the keeper. They block all signals and make
// a signalfd, without which nothing would wake the keeper when its children end.
func (m *keeperMem) setupSteps() []Step {
	m.mask = ^uint64(0)
	mask := uintptr(unsafe.Pointer(&m.mask))
	signalfd := [6]uintptr{^uintptr(0), mask, 8, unix.SFD_NONBLOCK | unix.SFD_CLOEXEC}
	return []Step{
		{Name: "rt_sigprocmask(2)", Nr: unix.SYS_RT_SIGPROCMASK, Args: [6]uintptr{unix.SIG_SETMASK, mask, 0, 8}},
		{Name: "signalfd4(2)", Nr: unix.SYS_SIGNALFD4, Args: signalfd, Out: &m.signals},
		{Name: "prctl(PR_SET_CHILD_SUBREAPER)", Nr: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_SET_CHILD_SUBREAPER, 1}},
	}
}

// release frees the caller's mapping of the shared memory. The keeper has its own.
func (j *image) release() {
	_ = unix.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(j.mem)), unsafe.Sizeof(*j.mem)))
}

// texts returns a vector for execve(2).
func (m *Memory) texts(ss []string) **byte {
	v := unsafe.Slice((**byte)(m.room(uintptr(len(ss)+1)*unsafe.Sizeof((*byte)(nil)))), len(ss)+1)
	for i, s := range ss {
		v[i] = m.Text(s)
	}
	return &v[0]
}
