package watch

import "golang.org/x/sys/unix"

// returned is what a stopped thread's call returned.
func returned(tid int) (int64, error) {
	const prStatus = 1 // NT_PRSTATUS (linux/elf.h)
	var regs unix.PtraceRegsArm64
	err := unix.PtraceGetRegSetArm64(tid, prStatus, &regs)
	return int64(regs.Regs[0]), err
}
