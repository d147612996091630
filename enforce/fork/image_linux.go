package fork

import (
	"errors"
	"fmt"
	"math"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// image is all that the new processes read. It is complete before the fork.
// What they write, and what a keeper needs later on, is in mem.
type image struct {
	path, dir  *byte
	argv, envp **byte
	files      [3]int32 // sources of descriptors 0, 1, 2; -1 leaves one as it is
	before     []Step   // Command.Before
	steps      []Step
	ownMemory  bool // Command.OwnMemory

	role        role
	conn        int32 // the keeper's end of the connection
	state       int32 // Keeper.State, or -1
	cgroupKill  int32 // Keeper.CgroupKill, or -1
	domain      bool
	keep        bool
	keeperSteps []Step
	self        uintptr // the caller's pid
	outsider    uintptr // the pid that a keeper in its domain must not be able to signal
	watched     int32   // pidfd of the process that a watcher watches
	mem         *keeperMem

	sigmask [1]uint64 // the caller's signal mask, for the command
	nofile  uintptr   // RLIMIT_NOFILE, for kernels without close_range(2)
	strings [][]*byte // keeps argv and envp alive
}

// role says what a forked process is.
type role uint32

const (
	roleCommand role = iota // becomes the command
	roleKeeper              // starts the command and keeps it
	roleWatcher             // keeps a process that is not its child
	roleCanary              // waits outside of a domain
)

func newImage(c *Command) (*image, error) {
	j := &image{before: c.Before, steps: c.Steps, ownMemory: c.OwnMemory, files: [3]int32{-1, -1, -1}, state: -1, cgroupKill: -1, self: uintptr(os.Getpid())}
	if len(c.Files) > len(j.files) {
		return nil, fmt.Errorf("%d files given, descriptors 0 to 2 only can be set", len(c.Files))
	}
	for i, f := range c.Files {
		if f != nil {
			j.files[i] = int32(f.Fd())
		}
	}
	var err error
	if j.path, err = syscall.BytePtrFromString(c.Path); err != nil {
		return nil, fmt.Errorf("path %q: %w", c.Path, err)
	}
	if c.Dir != "" {
		if j.dir, err = syscall.BytePtrFromString(c.Dir); err != nil {
			return nil, fmt.Errorf("directory %q: %w", c.Dir, err)
		}
	}
	if j.argv, err = j.cStrings(c.Args); err != nil {
		return nil, fmt.Errorf("argument: %w", err)
	}
	if j.envp, err = j.cStrings(c.Env); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil {
		j.nofile = uintptr(min(lim.Cur, 1<<20))
	}
	if err := j.share(); err != nil {
		return nil, err
	}
	if c.Keeper != nil {
		if err := j.setKeeper(c.Keeper); err != nil {
			j.release()
			return nil, err
		}
	}
	return j, nil
}

// share makes the memory that all processes of a start have in common.
func (j *image) share() error {
	size := (unsafe.Sizeof(keeperMem{}) + 4095) &^ 4095
	m, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("memory for the new processes: %w", err)
	}
	j.mem = (*keeperMem)(m)
	j.mem.size = size
	return nil
}

// release gives the memory back that only the forked keeper goes on using.
func (j *image) release() {
	if j.mem != nil {
		unix.MunmapPtr(unsafe.Pointer(j.mem), j.mem.size)
		j.mem = nil
	}
}

// cStrings makes a vector for execve(2) from one allocation.
func (j *image) cStrings(ss []string) (**byte, error) {
	n := 0
	for _, s := range ss {
		n += len(s) + 1
	}
	if n > math.MaxInt32 {
		return nil, syscall.E2BIG
	}
	buf := make([]byte, 0, n)
	ptrs := make([]*byte, len(ss)+1)
	for i, s := range ss {
		for k := range len(s) {
			if s[k] == 0 {
				return nil, fmt.Errorf("%q contains a NUL byte", s)
			}
		}
		at := len(buf)
		buf = append(append(buf, s...), 0)
		ptrs[i] = &buf[at : at+1][0]
	}
	j.strings = append(j.strings, ptrs)
	return &ptrs[0], nil
}

func (j *image) setKeeper(k *Keeper) error {
	j.role, j.outsider = roleKeeper, j.self
	j.domain, j.keep, j.keeperSteps = k.Domain, k.Keep, k.Steps
	if k.State != nil {
		j.state = int32(k.State.Fd())
	}
	if k.CgroupKill != nil {
		j.cgroupKill = int32(k.CgroupKill.Fd())
	}
	at := 0
	for _, path := range k.Remove {
		if at+len(path)+1 > RemoveSize {
			return errors.New("the paths to remove at the end are too long")
		}
		at += copy(j.mem.remove[at:], path) + 1
	}
	return nil
}
