package fork

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// cloneArgs is struct clone_args of linux/sched.h.
//
//lint:ignore U1000 the kernel's layout
type cloneArgs struct {
	flags, pidfd, childTid, parentTid, exitSignal, stack, stackSize, tls, setTid, setTidSize, cgroup uint64
}

// cloneClearSighand has the kernel take back all signal handlers in the child,
// which must not run there (Linux 5.5).
const cloneClearSighand = 0x100000000

// keeperExit is the signal that tells this process of the keeper's end, in the
// place of SIGCHLD (clone(2), "The child termination signal"). Like any SIGCONT it
// does nothing to a process that runs, and wakes one that is stopped, whoever
// stopped it: a stopped zsbx would outlive the session that the keeper ended. The
// keeper itself could not signal it from within its domain.
const keeperExit = syscall.SIGCONT

// keeperTLS is how much memory a lean keeper has on either side of where its
// thread pointer points, in bytes: assembly that calls a Go function loads the
// goroutine from there, which is of no use in the keeper, but on the heap.
const keeperTLS = 2 << 10

// keeperStack is the size of a lean keeper's stack, in bytes. Raw functions
// need less than two kilobytes in all: the linker checks them, but for what
// sweepAll says.
const keeperStack = 16 << 10

// heapArena is the size and alignment of the pieces that the Go heap grows by
// on 64-bit Linux, stacks of goroutines included.
const heapArena = 64 << 20

// prepareLean makes j lean, if nothing that the new processes read is on the
// Go heap.
func (j *image) prepareLean(c *Command, m *Memory) {
	for _, steps := range [][]Step{c.Before, c.Keeper.Steps, c.Steps} {
		for i := range steps {
			if s := &steps[i]; s.Keep != nil || s.Out != nil && !c.memory.holds(unsafe.Pointer(s.Out)) || s.Same != nil && !c.memory.holds(unsafe.Pointer(s.Same)) {
				return
			}
		}
	}
	j.before, j.keeperSteps, j.steps = PutSlice(m, c.Before), PutSlice(m, c.Keeper.Steps), PutSlice(m, c.Steps)
	j.clone = cloneArgs{
		flags: cloneClearSighand | unix.CLONE_SETTLS | uint64(j.namespaces), exitSignal: uint64(keeperExit),
		tls:   uint64(uintptr(m.room(2*keeperTLS)) + keeperTLS),
		stack: uint64(uintptr(m.room(keeperStack))), stackSize: keeperStack,
	}
	j.lean = len(m.heap) == 0 && (c.memory == nil || len(c.memory.heap) == 0)
	if j.shared = j.lean && mayShare(c); j.shared {
		j.clone.flags |= unix.CLONE_VM
	}
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

// leanFork forks the keeper without the Go heap around here (madvise(2),
// MADV_DONTFORK). Of a fork's time the copy of the heap's page table is the
// smaller part: afterwards each page that this process writes to would have to
// be copied, at some microseconds each. The error is ENOSYS or EINVAL on
// kernels before 5.5, and whatever a container's filter answers to clone3(2). A
// keeper that shares has the heap, and reads nothing of it.
//
//go:noinline
//go:norace
//go:nocheckptr
func leanFork(j *image) (uintptr, syscall.Errno) {
	var here byte
	heap := uintptr(unsafe.Pointer(&here)) &^ (heapArena - 1)
	if !j.shared { // a hole makes madvise say ENOMEM, after it did the rest
		call(unix.SYS_MADVISE, heap, heapArena, unix.MADV_DONTFORK, 0, 0, 0)
	}
	beforeFork()
	r := rawKeeper(&j.clone, j)
	afterFork()
	if !j.shared {
		call(unix.SYS_MADVISE, heap, heapArena, unix.MADV_DOFORK, 0, 0, 0)
	}
	if r < 0 {
		return 0, syscall.Errno(-r)
	}
	return uintptr(r), 0
}
