package attack_test

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// signalActs make files signal processes, or signal the command's own processes.
func signalActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"setown":       func(a []string) error { return onPipe(unix.F_SETOWN, uintptr(num(a[0]))) },
		"setown-group": func(a []string) error { return onPipe(unix.F_SETOWN, uintptr(-num(a[0]))) },
		"setown-high":  func(a []string) error { return onPipe(unix.F_SETOWN, uintptr(uint32(-num(a[0])))|1<<32) },
		"setown-self":  func([]string) error { return onPipe(unix.F_SETOWN, uintptr(os.Getpid())) },
		"setown-ex": func(a []string) error {
			owner := struct{ kind, pid int32 }{2 /* F_OWNER_PGRP */, int32(num(a[0]))}
			return onPipe(unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner)))
		},
		"fiosetown": func(a []string) error { return onSocket(0x8901, -num(a[0])) },
		"siocspgrp": func(a []string) error { return onSocket(0x8902, -num(a[0])) },
		"setsig":    func([]string) error { return onPipe(unix.F_SETSIG, uintptr(unix.SIGUSR1)) },
		"async":     func([]string) error { return onPipe(unix.F_SETFL, unix.O_ASYNC) },
		"sigio":     sigio,
		"tty-async": ttyAsync,
		"orphan":    orphan,
		"keeper":    func(a []string) error { return unix.Kill(os.Getppid(), signalOf(append([]string{""}, a...))) },
	}
}

// onPipe makes a fcntl(2) on a new pipe.
func onPipe(cmd, arg uintptr) error {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	return raw(unix.SYS_FCNTL, uintptr(p[0]), cmd, arg)
}

func onSocket(request uintptr, owner int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	to := int32(owner)
	return raw(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&to)))
}

// sigio tries to make the kernel signal a group: the caller joins the group, and a socket gets
// something to read. With CVE-2026-72183 that works if the caller is the group's newest
// process. Without a scope for signals it works for any group.
func sigio(a []string) error {
	group, how := num(a[0]), a[1]
	if err := unix.Setpgid(0, group); err != nil && how != "foreign" {
		return err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	to := int32(-group)
	owner := struct{ kind, pid int32 }{2, int32(group)}
	switch how {
	case "setown", "foreign":
		err = raw(unix.SYS_FCNTL, uintptr(pair[0]), unix.F_SETOWN, uintptr(-group))
	case "setown-ex":
		err = raw(unix.SYS_FCNTL, uintptr(pair[0]), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner)))
	case "fiosetown":
		err = raw(unix.SYS_IOCTL, uintptr(pair[0]), 0x8901, uintptr(unsafe.Pointer(&to)))
	case "siocspgrp":
		err = raw(unix.SYS_IOCTL, uintptr(pair[0]), 0x8902, uintptr(unsafe.Pointer(&to)))
	}
	return fire(pair[0], func() error { _, err := unix.Write(pair[1], []byte("x")); return err }, err)
}

// ttyAsync makes the terminal signal its foreground group when something is typed.
func ttyAsync([]string) error {
	typed := func() int {
		n, _ := unix.IoctlGetInt(0, unix.TIOCINQ)
		return n
	}
	before := typed()
	return fire(0, func() error {
		if !testkit.Within(testkit.Patience, func() bool { return typed() > before }) {
			return unix.ETIMEDOUT
		}
		return nil
	}, nil)
}

// fire makes a file send SIGUSR2 when there is something to read. The caller itself ignores it.
func fire(fd int, write func() error, err error) error {
	ignore := [4]uintptr{1}
	return then(
		func() error {
			return raw(unix.SYS_RT_SIGACTION, uintptr(unix.SIGUSR2), uintptr(unsafe.Pointer(&ignore)), 0, 8)
		},
		func() error { return err },
		func() error { return raw(unix.SYS_FCNTL, uintptr(fd), unix.F_SETSIG, uintptr(unix.SIGUSR2)) },
		func() error { return raw(unix.SYS_FCNTL, uintptr(fd), unix.F_SETFL, unix.O_ASYNC|unix.O_NONBLOCK) },
		write)
}

// orphan signals a process that has lost its parent, as with a pid file.
func orphan([]string) error {
	out, err := exec.Command("/bin/sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		return err
	}
	pid := num(string(out[:len(out)-1]))
	for _, sig := range []syscall.Signal{unix.SIGSTOP, unix.SIGCONT, unix.SIGKILL} {
		if err := unix.Kill(pid, sig); err != nil {
			return err
		}
	}
	return nil
}
