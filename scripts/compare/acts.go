//go:build linux

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// act is something that should not be possible inside.
type act struct {
	name    string
	network bool // tried with the network turned off
	repo    bool // needs a repository
	do      func() error
	after   func(*world) error // outside, when do said that it was done: was it
}

const inheritedFd = "write through a descriptor that the caller left open"

func victim() int { n, _ := strconv.Atoi(os.Getenv("VICTIM")); return n }

func sys(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 {
		return errno
	}
	return nil
}

func dial(network, addr string) error {
	c, err := net.DialTimeout(network, addr, 2*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if network == "unixgram" || network == "udp" {
		_, err = c.Write([]byte("x"))
		return err
	}
	c.SetDeadline(time.Now().Add(2 * time.Second))
	_, err = c.Read(make([]byte, 5))
	return err
}

func socket(domain, typ, proto int) error {
	fd, err := unix.Socket(domain, typ, proto)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func open(name string, flags int) error {
	f, err := os.OpenFile(name, flags, 0o600)
	if err == nil {
		f.Close()
	}
	return err
}

func acts() []act {
	list := append(fileActs(), networkActs()...)
	return append(append(list, processActs()...), kernelActs()...)
}

func fileActs() []act {
	out := func(name string) string { return filepath.Join(os.Getenv("OHOME"), name) }
	return []act{
		{name: "read a file outside", do: func() error { return open(os.Getenv("SECRET"), os.O_RDONLY) }},
		{name: "write a file outside", do: func() error { return open(os.Getenv("OUTSIDE"), os.O_WRONLY) }},
		{name: "make a file outside", do: func() error { return open(out("new"), os.O_CREATE|os.O_WRONLY) }},
		{name: "learn that a file outside exists", do: func() error { _, err := os.Stat(os.Getenv("SECRET")); return err }},
		{name: "change the mode of a file outside", do: func() error { return os.Chmod(os.Getenv("OUTSIDE"), 0o644) }},
		{name: "change the times of a file outside", do: func() error {
			return os.Chtimes(os.Getenv("OUTSIDE"), time.Unix(1, 0), time.Unix(1, 0))
		}},
		{name: inheritedFd, do: func() error { _, err := unix.Write(9, []byte("x")); return err }},
		{name: "write a git hook of a repository in the writable tree", repo: true, do: func() error {
			return os.WriteFile("repo/.git/hooks/pre-commit", []byte("#!/bin/sh\n"), 0o755)
		}, after: func(w *world) error { return os.Remove(filepath.Join(w.work, "repo/.git/hooks/pre-commit")) }},
	}
}

func networkActs() []act {
	return []act{
		{name: "TCP, network off", network: true, do: func() error { return dial("tcp", os.Getenv("TCP")) }},
		{name: "UDP, network off", network: true, do: func() error { return dial("udp", os.Getenv("UDP")) }, after: packetCame},
		{name: "an abstract socket of a daemon outside, network off", network: true, do: func() error { return dial("unix", os.Getenv("ABSTRACT")) }},
		{name: "an abstract socket of a daemon outside", do: func() error { return dial("unix", os.Getenv("ABSTRACT")) }},
		{name: "a socket of a daemon outside, by path", do: func() error { return dial("unix", os.Getenv("PATHSOCK")) }},
		{name: "a datagram to a daemon outside, by path", do: func() error { return dial("unixgram", os.Getenv("DGRAM")) }, after: packetCame},
		{name: "make a vsock socket", do: func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }},
	}
}

func processActs() []act {
	return []act{
		{name: "signal a process outside", do: func() error { return unix.Kill(victim(), unix.SIGURG) }},
		{name: "read the environment of a process outside", do: func() error {
			return open(fmt.Sprintf("/proc/%d/environ", victim()), os.O_RDONLY)
		}},
		{name: "read the command line of a process outside", do: func() error {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", victim()))
			if err == nil && !strings.Contains(string(b), "sleep") {
				err = errors.New("another process")
			}
			return err
		}},
		{name: "limit the memory of a process outside (prlimit)", do: func() error {
			return unix.Prlimit(victim(), unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
		}},
		{name: "lower the priority of a process outside", do: func() error { return unix.Setpriority(unix.PRIO_PROCESS, victim(), 19) }},
		{name: "leave a daemon behind", do: func() error {
			c := exec.Command("sleep", "321.5")
			c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			return c.Start()
		}, after: daemonLives},
	}
}

// daemonLives looks for the daemon, and ends it.
func daemonLives(*world) error {
	time.Sleep(100 * time.Millisecond)
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, d := range dirs {
		b, _ := os.ReadFile(d)
		if string(b) == "sleep\x00321.5\x00" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(d)))
			return unix.Kill(pid, unix.SIGKILL)
		}
	}
	return errors.New("it is gone")
}

func kernelActs() []act {
	return []act{
		{name: "attach System V shared memory of a program outside", do: func() error {
			id, _ := strconv.Atoi(os.Getenv("SHM"))
			return sys(unix.SYS_SHMAT, uintptr(id), 0, 0)
		}},
		{name: "open another terminal of the user", do: func() error { return open(os.Getenv("TERMINAL"), os.O_RDWR|unix.O_NOCTTY) }},
		{name: "read POSIX shared memory of a program outside", do: func() error { return open(os.Getenv("POSIXSHM"), os.O_RDONLY) }},
		{name: "io_uring", do: func() error {
			var p [120]byte
			return sys(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)))
		}},
		{name: "userfaultfd", do: func() error { return sys(unix.SYS_USERFAULTFD, 1) }},
		{name: "read the user's keyring", do: func() error { return sys(unix.SYS_KEYCTL, 0, ^uintptr(3), 1) }},
		{name: "make a user namespace", do: func() error {
			c := exec.Command("true")
			c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
			return c.Run()
		}},
		{name: "move to another control group by clone3", do: func() error {
			var a [88]byte
			err := sys(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&a)), 1)
			if err == unix.EINVAL {
				return nil // the call is there
			}
			return err
		}},
	}
}
