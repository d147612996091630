//go:build linux && (amd64 || arm64)

package fork

// rawVfork is clone(2) with flags in which the child borrows the parent's
// memory: the parent sleeps until the child executes or exits. It gives the
// pid, 0 in the child, or a negative errno. Its caller must not return in the
// child.
//
//go:noescape
func rawVfork(flags uintptr) (r int)

// vforkFlags is what rawVfork is called with.
const vforkFlags = 0x4100 | 17 // CLONE_VFORK | CLONE_VM | SIGCHLD

// rawKeeper is clone3(2): the child runs runKeeper(j) on the stack that args
// names, and never returns. It gives the child's pid or a negative errno.
//
//go:noescape
func rawKeeper(args *cloneArgs, j *image) (r int)

// call is a system call: the result, or the negative errno as the kernel gives
// it. Package syscall's would take three frames of a stack that can't grow.
// Raw.
//
//go:noescape
func call(nr, a1, a2, a3, a4, a5, a6 uintptr) (r int)
