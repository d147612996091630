package attack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socketActs try to reach the socket of a program outside.
func socketActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"reach":     func(a []string) error { return reach(unix.SOCK_STREAM, a[0], a[1]) },
		"reach-seq": func(a []string) error { return reach(unix.SOCK_SEQPACKET, a[0], a[1]) },
		"reach-nonblock": func(a []string) error {
			return reach(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, a[0], a[1])
		},
		"reach-own": func(a []string) error {
			fd, err := serveOwn(a[1])
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return reach(unix.SOCK_STREAM, a[0], a[1])
		},
		"dgram":      sendDatagram,
		"dgram-pair": sendFromPair,
		"pair-way":   func(a []string) error { return pairWay(a[0], a[1]) },
		"pair-works": pairWorks,
		"raw-length": func(a []string) error { return rawLength(a[0], num(a[1])) },
		"not-socket": func(a []string) error { return reach(unix.SOCK_STREAM, "plain", a[0]) },
		"unspec":     func([]string) error { return rawConnect(unix.SOCK_STREAM, []byte{0, 0, 0, 0}) },
		"stdin":      func(a []string) error { return connectRaw(0, unixAddress(a[0])) },
		"stdin-send": func(a []string) error { return unix.Sendto(0, []byte("x"), 0, &unix.SockaddrUnix{Name: a[0]}) },
		"stdin-udp": func(a []string) error {
			return unix.Sendto(0, []byte("x"), 0, &unix.SockaddrInet4{Port: num(a[0]), Addr: [4]byte{127, 0, 0, 1}})
		},
		"pass":          func(a []string) error { return reachPassed(a[0]) },
		"link-socket":   func(a []string) error { return linkSocket(a[0], a[1]) },
		"move-socket":   func(a []string) error { return moveSocket(a[0], a[1]) },
		"move-listen":   func(a []string) error { return moveThenListen(a[0], a[1]) },
		"twin-inode":    func(a []string) error { return twinInode(a[0], a[1]) },
		"twin-number":   func(a []string) error { return twinNumber(a[0], a[1]) },
		"planned":       planned,
		"crowd":         func(a []string) error { return crowd(a[0], num(a[1])) },
		"in-container":  inContainer,
		"refused-call":  refusedCall,
		"probe-failing": probeFailing,
		"inherit-ino":   reuseInode,
		"own-name":      takeOverName,
		"twin-name":     func(a []string) error { return twinName(num(a[0]), num(a[1]), a[2]) },
		"race-memory":   func(a []string) error { return raceMemory(a[0], a[1]) },
		"race-fd":       func(a []string) error { return raceDescriptor(a[0], num(a[1])) },
		"race-link":     func(a []string) error { return raceLink(a[0], a[1]) },
		"race-start":    func(a []string) error { return raceStart(a[0], a[1]) },
		"race-cwd":      func(a []string) error { return raceDirectory(a[0], a[1]) },
		"undumpable":    func(a []string) error { return undumpable(a[0]) },
	}
}

// unixAddress returns a struct sockaddr_un whose path ends with the address.
func unixAddress(path string) []byte {
	return append([]byte{unix.AF_UNIX, 0}, path...)
}

func connectRaw(fd int, addr []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(addr))), uintptr(len(addr)))
	return errnoOf(errno)
}

func rawConnect(kind int, addr []byte) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return connectRaw(fd, addr)
}

// reach connects to the socket OUT/name from IN, with some spelling.
func reach(kind int, how, target string) error {
	addr, err := spell(how, target)
	if err != nil {
		return err
	}
	return rawConnect(kind, addr)
}

// spell returns the address of a socket in a form that a guard might misread.
func spell(how, target string) ([]byte, error) {
	dir, name := filepath.Split(target)
	open := func(path string) (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) }
	switch how {
	case "plain":
		return unixAddress(target), nil
	case "zero": // with a NUL byte and more after it
		return unixAddress(target + "\x00/sock"), nil
	case "relative":
		cwd, _ := os.Getwd()
		rel, err := filepath.Rel(cwd, target)
		return unixAddress(rel), err
	case "full": // 108 bytes, no NUL byte
		return unixAddress(strings.Repeat("/", 108-len(target)) + target), nil
	case "link":
		return unixAddress("link"), os.Symlink(target, "link")
	case "dirlink":
		return unixAddress("dirlink/" + name), os.Symlink(dir, "dirlink")
	case "cwd":
		return unixAddress(name), os.Chdir(dir)
	case "proc-root":
		return unixAddress("/proc/self/root" + target), nil
	case "proc-cwd":
		return unixAddress("/proc/thread-self/cwd/" + name), os.Chdir(dir)
	case "proc-dir":
		fd, err := open(dir)
		return unixAddress(fmt.Sprintf("/proc/self/fd/%d/%s", fd, name)), err
	case "proc-fd":
		fd, err := open(target)
		return unixAddress(fmt.Sprintf("/proc/self/fd/%d", fd)), err
	case "proc-pid":
		fd, err := open(target)
		return unixAddress(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)), err
	case "dev-fd":
		fd, err := open(target)
		return unixAddress(fmt.Sprintf("/dev/fd/%d", fd)), err
	case "abstract":
		return unixAddress("\x00" + target), nil
	}
	return nil, fmt.Errorf("no spelling %q", how)
}

func sendDatagram(a []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return sendNamed(fd, a[0], a[1])
}

func sendFromPair(a []string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return sendNamed(pair[0], a[0], a[1])
}

// sendNamed sends a datagram by one of the calls for that.
func sendNamed(fd int, how, path string) error {
	to := &unix.SockaddrUnix{Name: path}
	switch how {
	case "sendto":
		return unix.Sendto(fd, []byte("x"), 0, to)
	case "sendmsg":
		return unix.Sendmsg(fd, []byte("x"), nil, to, 0)
	case "sendmmsg":
		addr, data := unixAddress(path+"\x00"), []byte("x")
		iov := unix.Iovec{Base: &data[0], Len: 1}
		msg := struct {
			unix.Msghdr
			n uint32
		}{Msghdr: unix.Msghdr{Name: &addr[0], Namelen: uint32(len(addr)), Iov: &iov, Iovlen: 1}}
		return raw(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), 1, 0)
	case "connect":
		return then(func() error { return unix.Connect(fd, to) }, func() error { _, err := unix.Write(fd, []byte("x")); return err })
	}
	return fmt.Errorf("no call %q", how)
}

// rawLength passes connect(2) a wrong length for an address.
func rawLength(path string, n int) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	addr := make([]byte, 4096)
	copy(addr, unixAddress(path))
	return raw(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&addr[0])), uintptr(n))
}

// reachPassed connects a socket that another process made and passed on.
func reachPassed(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fd, err = passed(fd)
	if err != nil {
		return err
	}
	return connectRaw(fd, unixAddress(path))
}

// passed sends a descriptor through a socket and returns what arrives.
func passed(fd int) (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0); err != nil {
		return -1, err
	}
	unix.Close(fd)
	control := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), control, 0)
	if err != nil {
		return -1, err
	}
	msgs, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return -1, err
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// pairWay makes a pair of datagram sockets, changes one in some way, and sends from it to a socket
// outside by every call. The answer is that of the last call.
func pairWay(how, target string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	fd := pair[0]
	switch how {
	case "plain":
	case "raw":
		pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return err
		}
		fd = pair[1]
	case "passed":
		fd, err = passed(fd)
	case "alone":
		err = unix.Close(pair[1])
	case "shut":
		err = unix.Shutdown(pair[1], unix.SHUT_RDWR)
	case "bound":
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("@zsbx-bound-%d", os.Getpid())})
	case "apart":
		connectRaw(fd, []byte{0, 0, 0, 0}) // AF_UNSPEC
	case "listening":
		unix.Listen(fd, 1)
	case "opened": // it can't be
		if again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR, 0); err == nil {
			fd = again
		}
	default:
		return fmt.Errorf("no way %q", how)
	}
	if err != nil {
		return err
	}
	for _, call := range []string{"sendto", "sendmsg", "sendmmsg", "connect"} {
		err = sendNamed(fd, call, target)
	}
	return err
}

// pairWorks uses a pair of datagram sockets. EBADMSG means that something differs from what
// socketpair(2) says.
func pairWorks([]string) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	flags, _ := unix.FcntlInt(uintptr(pair[0]), unix.F_GETFD, 0)
	status, _ := unix.FcntlInt(uintptr(pair[1]), unix.F_GETFL, 0)
	if flags != 0 || status&unix.O_NONBLOCK == 0 {
		return unix.EBADMSG
	}
	for _, text := range []string{"one", "", "three"} {
		if err := unix.Send(pair[0], []byte(text), 0); err != nil {
			return err
		}
	}
	for _, text := range []string{"one", "", "three"} {
		buf := make([]byte, 16)
		if n, err := unix.Read(pair[1], buf); err != nil || string(buf[:n]) != text {
			return unix.EBADMSG
		}
	}
	if _, err := unix.Read(pair[1], make([]byte, 1)); err != unix.EAGAIN {
		return unix.EBADMSG
	}
	pair2, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.AF_UNIX)
	if err != nil {
		return err
	}
	flags, _ = unix.FcntlInt(uintptr(pair2[1]), unix.F_GETFD, 0)
	if flags != unix.FD_CLOEXEC {
		return unix.EBADMSG
	}
	var two [2]int32
	const unknown = 0x100
	for _, c := range []struct {
		kind, protocol, at uintptr
		want               unix.Errno
	}{
		{unix.SOCK_DGRAM, 0, 8, unix.EFAULT}, {unix.SOCK_DGRAM, 0, ^uintptr(7), unix.EFAULT},
		{unix.SOCK_DGRAM, 5, uintptr(unsafe.Pointer(&two)), unix.EPROTONOSUPPORT},
		{unix.SOCK_DGRAM | unknown, 0, uintptr(unsafe.Pointer(&two)), unix.EINVAL},
	} {
		if err := raw(unix.SYS_SOCKETPAIR, unix.AF_UNIX, c.kind, c.protocol, c.at); err != c.want {
			return unix.EBADMSG
		}
	}
	return nil
}

// serveOwn listens on a path or an abstract name until the act ends.
func serveOwn(name string) (int, error) {
	fd, err := bindOwn(name)
	if err == nil {
		err = unix.Listen(fd, 128)
	}
	return fd, err
}

func bindOwn(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrUnix{Name: name})
}

// crowd listens on many paths until that fails. Then all must still be reached, and once they are
// closed new ones can listen. The answer is that of the call that failed.
func crowd(dir string, n int) error {
	path := func(i int) string { return fmt.Sprintf("%s/%d", dir, i) }
	var open []int
	var refused error
	for len(open) < n && refused == nil {
		var fd int
		fd, refused = serveOwn(path(len(open)))
		if refused == nil {
			open = append(open, fd)
		}
	}
	for i, fd := range open {
		if err := rawConnect(unix.SOCK_STREAM, unixAddress(path(i))); err != nil {
			return fmt.Errorf("socket %d of %d: %w", i, len(open), unix.EBADMSG)
		}
		unix.Close(fd)
	}
	for i := range open {
		if err := rawConnect(unix.SOCK_STREAM, unixAddress(path(i))); err != unix.ECONNREFUSED {
			return fmt.Errorf("socket %d, closed: %w", i, unix.EBADMSG)
		}
	}
	for i := range 3 {
		fd, err := serveOwn(fmt.Sprintf("%s/again%d", dir, i))
		if err != nil {
			return fmt.Errorf("again: %w", unix.EBADMSG)
		}
		defer unix.Close(fd)
	}
	return refused
}

// twinName listens on an abstract name with a socket of a kind, and connects to it with
// one of another.
func twinName(own, other int, name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, own|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := then(func() error { return unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}) }, func() error { return unix.Listen(fd, 1) }); err != nil {
		return err
	}
	return reach(other, "abstract", name)
}

// linkSocket makes another name for the socket outside.
func linkSocket(target, name string) error {
	if err := os.Link(target, name); err != nil {
		return err
	}
	return rawConnect(unix.SOCK_STREAM, unixAddress(name))
}

// moveSocket replaces a socket of the session by the socket outside, which is in a writable
// directory.
func moveSocket(target, own string) error {
	fd, err := serveOwn(own)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := then(func() error { return os.Remove(own) }, func() error { return os.Rename(target, own) }); err != nil {
		return err
	}
	defer os.Rename(own, target)
	return rawConnect(unix.SOCK_STREAM, unixAddress(own))
}

// moveThenListen does the same before the session's socket listens.
func moveThenListen(target, own string) error {
	fd, err := bindOwn(own)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := then(func() error { return os.Remove(own) }, func() error { return os.Rename(target, own) },
		func() error { return unix.Listen(fd, 1) }); err != nil {
		return err
	}
	defer os.Rename(own, target)
	return rawConnect(unix.SOCK_STREAM, unixAddress(own))
}

// undumpable is what ssh-agent(1) does before it listens.
func undumpable(own string) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	fd, err := serveOwn(own)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return rawConnect(unix.SOCK_STREAM, unixAddress(own))
}
