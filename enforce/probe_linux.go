package enforce

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func probe() Caps {
	c := Caps{OS: "linux", Arch: runtime.GOARCH, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	c.Landlock, c.LandlockReason = probeLandlock()
	if c.Landlock > 0 {
		const errata = 2 // LANDLOCK_CREATE_RULESET_ERRATA
		if e, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, errata); errno == 0 {
			c.LandlockErrata = uint32(e)
		}
	}
	c.Seccomp, c.SeccompReason = probeAction(unix.SECCOMP_RET_ERRNO)
	c.Capabilities = permitted()
	if c.Seccomp {
		c.SeccompNotify, c.SeccompNotifyReason = probeNotify(c.Capabilities)
		c.SeccompNotifyApart = yamaRefusesApart(yamaScope(), c.Capabilities)
	}
	c.Privileged = c.Capabilities&(1<<unix.CAP_SYS_ADMIN) != 0
	switch {
	case c.Privileged:
		c.MountNS = true
	case c.UID == 0:
		// A user namespace would give root's powers over nothing but its
		// own files, and take those over the files of others away.
		c.MountReason = "CAP_SYS_ADMIN is missing"
	default:
		c.MountReason, c.MountHint = refusesUserNS()
		c.MountNS = c.MountReason == ""
	}
	return c
}

// probeLandlock asks for the version of Landlock. The answer is the kernel's
// own; /sys/kernel/security/lsm is missing in many containers.
func probeLandlock() (version int, reason string) {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch errno {
	case 0:
		return int(v), ""
	case unix.ENOSYS:
		return 0, "it is not built into this kernel, or hidden by a seccomp filter"
	case unix.EOPNOTSUPP:
		return 0, "it is built into this kernel and not in the lsm= list it was booted with"
	case unix.EPERM, unix.EACCES:
		return 0, "a seccomp filter of the container refuses it"
	}
	return 0, errno.Error()
}

// probeAction asks whether a filter may give an answer.
func probeAction(action uint32) (bool, string) {
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	switch errno {
	case 0:
		return true, ""
	case unix.ENOSYS, unix.EINVAL:
		return false, "filters are not built into this kernel"
	case unix.EPERM, unix.EACCES:
		return false, "a seccomp filter of the container refuses another one"
	}
	return false, errno.Error()
}

// permitted is the calling thread's permitted capability set.
func permitted() uint64 {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return 0
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted)
}
