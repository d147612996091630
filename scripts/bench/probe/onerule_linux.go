package main

import (
	"log"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func init() { probes["onerule"] = oneRule }

// oneRule executes a program under one Landlock rule that allows everything. Its time,
// less the start of a Go program, is the kernel's walk through the path.
func oneRule(args []string) {
	runtime.LockOSThread()
	rights := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1)
	ruleset, _, e1 := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rights)), 8, 0)
	root, err := unix.Open("/", unix.O_PATH, 0)
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(root)}
	_, _, e2 := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, ruleset, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	e3 := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	_, _, e4 := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0)
	path, e5 := exec.LookPath(args[0])
	log.Fatal(e1, err, e2, e3, e4, e5, syscall.Exec(path, args, os.Environ()))
}
