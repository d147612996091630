package watch

import "golang.org/x/sys/unix"

// returned is what a stopped thread's call returned.
func returned(tid int) (int64, error) {
	var regs unix.PtraceRegs
	err := unix.PtraceGetRegs(tid, &regs)
	return int64(regs.Rax), err
}
