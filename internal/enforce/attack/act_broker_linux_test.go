package attack_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
)

// brokerActs try to make the broker do more for the command than the command could do itself,
// or hang.
func brokerActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"netlink-peer":  func(a []string) error { return sendNetlink(uint32(num(a[0])), 0) },
		"netlink-group": func(a []string) error { return sendNetlink(0, 1<<(num(a[0])-1)) },
		"netlink-own":   func([]string) error { return sendNetlink(0, 0) },
		"authority":     func(a []string) error { return authority(a[0], a[1]) },
		"stall":         func(a []string) error { return stall(a[0], a[1]) },
		"overseer":      overseer,
		"knock":         func(a []string) error { return knock(a[0], a[1]) },
		"stdin-anew":    func(a []string) error { return stdinAnew(a[0], num(a[1])) },
		"through-link":  func(a []string) error { return throughLink(a[0], a[1]) },
		"own-overseer":  func(a []string) error { return ownOverseer(a[0]) },
	}
}

// sendNetlink connects to a netlink address and sends a message.
func sendNetlink(port, groups uint32) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return then(
		func() error {
			return unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: port, Groups: groups})
		},
		func() error {
			if port|groups == 0 {
				return nil
			}
			_, err := unix.Write(fd, []byte("zsbx"))
			return err
		})
}

// authority gives up some right, and then connects or listens. EBADMSG means that the other
// side saw another identity.
func authority(how, path string) error {
	fd, err := bindOwn(path)
	if err != nil {
		return err
	}
	const somebody, group = 65534, 4242
	runtime.LockOSThread() // never unlocked, since the thread is changed
	switch how {
	case "capability": // to write to any file
		err = then(func() error { return unix.Listen(fd, 8) }, func() error { return os.Chown(path, somebody, somebody) },
			func() error { return os.Chmod(path, 0o600) }, dropCapabilities)
	case "fsuid":
		err = then(func() error { return unix.Listen(fd, 8) }, func() error { return os.Chmod(path, 0o600) },
			func() error { return raw(unix.SYS_SETFSUID, somebody) })
	case "groups":
		list := []uint32{group}
		err = then(func() error { return unix.Listen(fd, 8) },
			func() error { return raw(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&list[0]))) })
	case "listener":
		keep := ^uintptr(0)
		err = then(func() error { return raw(unix.SYS_SETRESUID, keep, somebody, keep) }, func() error { return unix.Listen(fd, 8) },
			func() error { return raw(unix.SYS_SETRESUID, keep, 0, keep) })
	}
	if err != nil {
		return fmt.Errorf("%s: %s", how, err.Error())
	}
	c, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := connectRaw(c, unixAddress(path)); err != nil {
		return err
	}
	switch how {
	case "listener":
		if cred, err := unix.GetsockoptUcred(c, unix.SOL_SOCKET, unix.SO_PEERCRED); err != nil || cred.Uid != somebody {
			return unix.EBADMSG
		}
	case "groups":
		peer, _, err := unix.Accept(fd)
		if err != nil {
			return err
		}
		const soPeerGroups = 59
		list, size := make([]uint32, 64), uint32(256)
		err = raw(unix.SYS_GETSOCKOPT, uintptr(peer), unix.SOL_SOCKET, soPeerGroups, uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&size)))
		if err != nil || !slices.Equal(list[:size/4], []uint32{group}) {
			return unix.EBADMSG
		}
	}
	return nil
}

// dropCapabilities drops this thread's effective capabilities.
func dropCapabilities() error {
	head, data := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Effective, data[1].Effective = 0, 0
	return unix.Capset(&head, &data[0])
}

// stall makes calls that the broker makes for it take long. Meanwhile the broker must answer
// other calls.
func stall(how, own string) error {
	time.AfterFunc(testkit.Patience, func() { os.Exit(int(unix.ETIMEDOUT)) })
	l, err := serveOwn(own)
	if err != nil {
		return err
	}
	go drain(l)
	begin, stop := stallLinger, time.Now().Add(time.Second)
	if how == "full" {
		begin = stallFull
	}
	if err := begin(own + "-full"); err != nil {
		return err
	}
	for time.Now().Before(stop) {
		// Before Linux 5.19 an interrupted call is repeated, and finds the socket connected.
		if err := rawConnect(unix.SOCK_STREAM, unixAddress(own)); err != nil && err != unix.EISCONN {
			return err
		}
	}
	return nil
}

// stallFull connects to its own full socket, while other threads make these calls block in the
// kernel.
func stallFull(own string) error {
	full, err := bindOwn(own)
	if err != nil {
		return err
	}
	if err := unix.Listen(full, 0); err != nil {
		return err
	}
	if err := rawConnect(unix.SOCK_STREAM, unixAddress(own)); err != nil {
		return err
	}
	for range 2 {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		go func() { connectRaw(fd, unixAddress(own)) }()
		go func() {
			for {
				raw(unix.SYS_FCNTL, uintptr(fd), unix.F_SETFL, 0)
			}
		}()
	}
	return nil
}

// stallLinger closes sockets while the broker has copies. Closing the last copy blocks until
// what was sent has arrived (SO_LINGER), and nobody receives it.
func stallLinger(string) error {
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Listen(l, 100); err != nil {
		return err
	}
	to, err := unix.Getsockname(l)
	if err != nil {
		return err
	}
	port := to.(*unix.SockaddrInet4).Port
	for range 30 {
		to := &unix.SockaddrInet4{Port: port, Addr: loop4} // Connect writes to it
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		err = then(func() error { return unix.Connect(fd, to) },
			func() error {
				return unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 60})
			})
		if err != nil {
			return err
		}
		for err = nil; err == nil; {
			_, err = unix.SendmsgN(fd, make([]byte, 1<<16), nil, nil, unix.MSG_DONTWAIT)
		}
		go unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: loop4})
		go unix.Dup3(null, fd, unix.O_CLOEXEC)
	}
	return nil
}

// overseer starts an act in a confined process and answers its calls for some time, and must
// notice when that is over. a[0] is the writable directory, a[1] the time in milliseconds, a[2]
// the act.
func overseer(a []string) error {
	exe, plan, err := planIn(a[0], enforce.Options{})
	if err != nil {
		return err
	}
	c := &fork.Command{Path: exe, Args: append([]string{exe}, a[3:]...), Dir: a[0], Keeper: &fork.Keeper{},
		Env: []string{"ZSBX_TEST_ACT=" + a[2], "GOMAXPROCS=4"}}
	m, err := plan.Confine(c)
	if err != nil {
		return err
	}
	if m != nil {
		go m.Serve()
	}
	if _, err := fork.Start(c); err != nil {
		return err
	}
	end := time.After(time.Duration(num(a[1])) * time.Millisecond)
	for {
		select {
		case <-end:
			return nil
		case <-time.After(50 * time.Millisecond):
			runtime.GC() // waits for every thread that runs Go code
		}
	}
}

// knock connects to a socket outside again and again, and logs the answers.
func knock(target, log string) error {
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	fmt.Fprintf(f, "%d\n", os.Getpid())
	for {
		var errno unix.Errno
		if err := rawConnect(unix.SOCK_STREAM, unixAddress(target)); err != nil {
			errno = err.(unix.Errno)
		}
		fmt.Fprintf(f, "%d\n", errno)
		time.Sleep(10 * time.Millisecond)
	}
}

// throughLink connects to a path by a link in the working directory: with "own" to its own
// socket there, with "direct" without a link.
func throughLink(whose, path string) error {
	if whose == "own" {
		fd, err := bindOwn(path)
		if err != nil || unix.Listen(fd, 1) != nil {
			return errors.Join(err, unix.EINVAL)
		}
	}
	link := "through"
	_ = os.Remove(link)
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if whose == "direct" {
		link = path
	} else if err := os.Symlink(path, link); err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrUnix{Name: link})
}

// ownOverseer waits until nobody answers its calls, lets one of its own threads answer them,
// and connects.
func ownOverseer(target string) error {
	for rawConnect(unix.SOCK_STREAM, unixAddress(target)) == unix.EACCES {
		time.Sleep(time.Millisecond)
	}
	runtime.LockOSThread() // never unlocked, since only this thread has the filter
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_CONNECT, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	queue, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&filter)))
	if errno != 0 {
		return errno
	}
	go func() {
		// The first words of struct seccomp_notif, and of struct seccomp_notif_resp.
		var call [10]uint64
		var answer [3]uint64
		for raw(unix.SYS_IOCTL, queue, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&call))) != nil {
		}
		answer[0], answer[2] = call[0], unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE<<32
		_ = raw(unix.SYS_IOCTL, queue, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&answer)))
	}()
	return rawConnect(unix.SOCK_STREAM, unixAddress(target))
}
