package fork

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/nofile"
)

// image is all that the new processes read. It is complete before the fork,
// and outside of the Go heap with all that it points to. What the processes write,
// and what a keeper needs later on, is in mem.
type image struct {
	path, dir  *byte
	argv, envp **byte
	files      [3]int32 // sources of descriptors 0, 1, 2; -1 leaves one as it is
	before     []Step   // Command.Before
	steps      []Step
	ownMemory  bool // Command.OwnMemory

	role        role
	peer        int32   // the caller's end of the connection
	domain      bool    // Keeper.Domain
	keeperSteps []Step  // Keeper.Steps
	namespaces  uintptr // Command.Namespaces
	self        uintptr // the caller's pid, which a keeper in its domain must not be able to signal
	mem         *keeperMem

	shared       bool         // the keeper has the caller's memory, not a copy
	stack        uintptr      // where that of the first new process ends
	commandStack uintptr      // where that of the command ends, below a keeper
	run          uintptr      // runChild
	sigmask      [1]uint64    // the caller's signal mask, for the command
	fileLimit    *unix.Rlimit // of open files, as this process was started with; nil where that has not changed
	nofile       uintptr      // RLIMIT_NOFILE, for kernels without close_range(2)
}

// role says what a new process is.
type role uintptr

const (
	roleCommand role = iota // becomes the command
	roleKeeper              // starts the command and keeps it
)

// newImage makes the image of c in m.
func newImage(c *Command, m *Memory) (*image, error) {
	j := Put(m, image{
		before: PutSlice(m, c.Before), steps: PutSlice(m, c.Steps), ownMemory: c.OwnMemory, namespaces: c.Namespaces,
		stack: m.stack(), commandStack: m.stack(), run: reflect.ValueOf(runChild).Pointer(),
		files: [3]int32{-1, -1, -1}, self: uintptr(os.Getpid()), nofile: descriptors(),
	})
	if len(c.Files) > len(j.files) {
		return nil, fmt.Errorf("%d files given, descriptors 0 to 2 only can be set", len(c.Files))
	}
	for i, f := range c.Files {
		if f != nil {
			j.files[i] = int32(f.Fd())
		}
	}
	var err error
	if j.path, err = cString(m, c.Path); err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	if c.Dir != "" {
		if j.dir, err = cString(m, c.Dir); err != nil {
			return nil, fmt.Errorf("directory: %w", err)
		}
	}
	if j.argv, err = cStrings(m, c.Args); err != nil {
		return nil, fmt.Errorf("argument: %w", err)
	}
	if j.envp, err = cStrings(m, c.Env); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	if c.Namespaces != 0 && c.Keeper == nil {
		return nil, errors.New("namespaces need a keeper")
	}
	if soft, hard, known := nofile.AtStart(); known && soft != hard { // the runtime has raised it
		j.fileLimit = Put(m, unix.Rlimit{Cur: soft, Max: hard})
	}
	if err := j.share(); err != nil {
		return nil, err
	}
	if c.Keeper != nil {
		j.setKeeper(c, c.Keeper, m)
	}
	if m.err == nil && c.memory != nil {
		m.err = c.memory.err
	}
	if m.err != nil {
		j.release()
		return nil, m.err
	}
	return j, nil
}

// mayShare reports whether the keeper of c can use this process's memory rather than
// a copy (clone(2), CLONE_VM): what a copy costs is less the copying than what comes
// after it, as each page that this process writes to is copied once more, and its
// threads are interrupted for that. Against it speaks
//   - that a keeper which may outlive this process by days holds all of its memory;
//   - that without a domain around the keeper a command could trace it, unless the
//     keeper can't be dumped (PR_SET_DUMPABLE(2const)), which is a property of memory;
//   - that Before may make a process dumpable, which one that is not will not be.
func mayShare(c *Command) bool {
	return c.Share && c.Keeper.Domain && !c.Keeper.Keep && !c.OwnMemory && c.Namespaces == 0 &&
		call(unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0, 0, 0, 0) == 1
}

// descriptors is how many of them this process may have, and so the highest
// number that one can have.
func descriptors() uintptr {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 0
	}
	return uintptr(min(lim.Cur, 1<<20))
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
	j.mem.conn, j.mem.held, j.mem.stateFile, j.mem.cgroupKill = -1, -1, -1, -1
	return nil
}

// release gives back the memory of share, which only a keeper that has this process's
// memory goes on using there.
func (j *image) release() {
	if !j.shared {
		unix.MunmapPtr(unsafe.Pointer(j.mem), j.mem.size)
	}
}

// cString makes a string for the kernel.
func cString(m *Memory, s string) (*byte, error) {
	if strings.IndexByte(s, 0) >= 0 {
		return nil, fmt.Errorf("%q contains a NUL byte", s)
	}
	return m.Text(s), nil
}

// cStrings makes a vector for execve(2).
func cStrings(m *Memory, ss []string) (**byte, error) {
	v := unsafe.Slice((**byte)(m.room(uintptr(len(ss)+1)*unsafe.Sizeof((*byte)(nil)))), len(ss)+1)
	for i, s := range ss {
		var err error
		if v[i], err = cString(m, s); err != nil {
			return nil, err
		}
	}
	return &v[0], nil
}

// forEver is a time in nanoseconds that can be added to another one.
const forEver = 1 << 61

func (j *image) setKeeper(c *Command, k *Keeper, m *Memory) {
	j.role, j.shared = roleKeeper, mayShare(c)
	j.domain, j.mem.keep, j.keeperSteps = k.Domain, k.Keep, PutSlice(m, k.Steps)
	j.mem.limit, j.mem.killAfter = min(int64(c.Limit.Time), forEver), min(int64(c.Limit.Kill), forEver)
	if k.State != nil {
		j.mem.stateFile = int32(k.State.Fd())
	}
	if k.CgroupKill != nil {
		j.mem.cgroupKill = int32(k.CgroupKill.Fd())
	}
}
