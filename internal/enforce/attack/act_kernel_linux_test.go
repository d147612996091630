package attack_test

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelActs use parts of the kernel that builds don't need.
func kernelActs() map[string]func(args []string) error {
	zero := func(nr uintptr) func([]string) error {
		return func([]string) error { return raw(nr) }
	}
	return map[string]func([]string) error{
		// Called with zero arguments: a call that isn't refused returns EFAULT, EINVAL and so
		// on, or does nothing.
		"bpf":         zero(unix.SYS_BPF),
		"perf":        zero(unix.SYS_PERF_EVENT_OPEN),
		"userfaultfd": func([]string) error { return raw(unix.SYS_USERFAULTFD, 1 /* UFFD_USER_MODE_ONLY */) },
		"keyctl": func([]string) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
			return err
		},
		"add_key": func([]string) error {
			_, err := unix.AddKey("user", "zsbx-test", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		},
		"userns":    func([]string) error { return startIn(unix.CLONE_NEWUSER) },
		"tiocsti":   func([]string) error { return ioctlTTY(unix.TIOCSTI) },
		"tiocsti64": func([]string) error { return ioctlTTY(unix.TIOCSTI | 1<<32) },
		"tiocsetd": func([]string) error {
			var discipline int32 // N_TTY, which is set already
			return raw(unix.SYS_IOCTL, 0, unix.TIOCSETD, uintptr(unsafe.Pointer(&discipline)))
		},
		"tiocgwinsz": func([]string) error {
			return ioctlTTY(unix.TIOCGWINSZ)
		},
		"openpty":    openPty,
		"clone3":     zero(unix.SYS_CLONE3),
		"x32":        func([]string) error { return raw(unix.SYS_GETPID | 0x40000000) },
		"int80":      int80,
		"int80-sock": int80Socket,
		"capset":     func([]string) error { return regainCapabilities() },
		"setuid":     func(a []string) error { return exec.Command(a[0], a[1:]...).Run() },
		"mknod-root": func(a []string) error { return unix.Mknod(a[0], unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
		"chown":      func(a []string) error { return unix.Chown(a[0], 1, 1) },
		"raw-socket": func([]string) error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) },
		"fanotify":   func([]string) error { return raw(unix.SYS_FANOTIFY_INIT, 0x200 /* FAN_REPORT_FID */) },
		"dmesg": func([]string) error {
			var b [64]byte
			_, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, b[:])
			return err
		},
	}
}

// startIn starts a program in new namespaces.
func startIn(flags uintptr) error {
	c := exec.Command("/bin/true")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	return c.Run()
}

// ioctlTTY makes a request on the terminal that is standard input.
func ioctlTTY(request uintptr) error {
	buf := [64]byte{'x'}
	return raw(unix.SYS_IOCTL, 0, request, uintptr(unsafe.Pointer(&buf)))
}

// openPty makes a new pseudo-terminal and sets its size.
func openPty([]string) error {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return err
	}
	tty, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(tty)
	return unix.IoctlSetWinsize(tty, unix.TIOCSWINSZ, &unix.Winsize{Row: 10, Col: 20})
}

// regainCapabilities asks for a capability that was dropped.
func regainCapabilities() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Permitted |= 1 << unix.CAP_SYS_ADMIN
	data[0].Effective |= 1 << unix.CAP_SYS_ADMIN
	return unix.Capset(&head, &data[0])
}

// code32 makes a system call by the interrupt of 32-bit programs, which also works in a 64-bit
// process.
func code32(nr, arg1, arg2 uint32) (uint32, error) {
	code := []byte{0x53, // push rbx
		0xb8, byte(nr), byte(nr >> 8), 0, 0, // mov eax, nr
		0xbb, byte(arg1), 0, 0, 0, // mov ebx, arg1
		0xb9, byte(arg2), 0, 0, 0, // mov ecx, arg2
		0xba, 0, 0, 0, 0, // mov edx, 0
		0xcd, 0x80, // int 0x80
		0x5b, // pop rbx
		0xc3} // ret
	mem, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return 0, err
	}
	copy(mem, code)
	if err := endBySegv(); err != nil {
		return 0, err
	}
	entry := &struct{ pc *byte }{&mem[0]}
	f := *(*func() uint32)(unsafe.Pointer(&entry))
	r := f()
	if r > 0xfffff000 {
		return 0, syscall.Errno(-r)
	}
	return r, nil
}

// endBySegv lets the signal SIGSEGV end this process, and not the Go runtime, which would exit
// with status 2: that reads as an error number. A kernel without 32-bit system calls sends it.
func endBySegv() error {
	var byDefault [4]uint64 // struct sigaction of the kernel
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(unix.SIGSEGV), uintptr(unsafe.Pointer(&byDefault)), 0, 8, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// noCode32 is the answer to a 32-bit system call if the kernel was built, or told at its start, to
// have none.
const noCode32 = errnoSignal + syscall.Errno(unix.SIGSEGV)

func int80([]string) error {
	if runtime.GOARCH != "amd64" {
		return unix.ENOSYS
	}
	pid, err := code32(20, 0, 0) // getpid
	if err == nil && int(pid) != unix.Getpid() {
		return fmt.Errorf("getpid gave %d", pid)
	}
	return err
}

func int80Socket([]string) error {
	if runtime.GOARCH != "amd64" {
		return unix.ENOSYS
	}
	_, err := code32(359, unix.AF_INET, unix.SOCK_DGRAM) // socket
	return err
}
