package enforce_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
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
		"raw-length": func(a []string) error { return rawLength(a[0], num(a[1])) },
		"not-socket": func(a []string) error { return reach(unix.SOCK_STREAM, "plain", a[0]) },
		"unspec":     func([]string) error { return rawConnect(unix.SOCK_STREAM, []byte{0, 0, 0, 0}) },
		"stdin":      func(a []string) error { return connectRaw(0, unixAddress(a[0])) },
		"stdin-send": func(a []string) error { return unix.Sendto(0, []byte("x"), 0, &unix.SockaddrUnix{Name: a[0]}) },
		"stdin-udp": func(a []string) error {
			return unix.Sendto(0, []byte("x"), 0, &unix.SockaddrInet4{Port: num(a[0]), Addr: [4]byte{127, 0, 0, 1}})
		},
		"pass":             func(a []string) error { return reachPassed(a[0]) },
		"link-socket":      func(a []string) error { return linkSocket(a[0], a[1]) },
		"move-socket":      func(a []string) error { return moveSocket(a[0], a[1]) },
		"move-listen":      func(a []string) error { return moveThenListen(a[0], a[1]) },
		"twin-inode":       func(a []string) error { return twinInode(a[0], a[1]) },
		"in-container":     inContainer,
		"inherit-ino":      reuseInode,
		"own-name":         takeOverName,
		"race-memory":      func(a []string) error { return raceMemory(a[0], a[1]) },
		"race-fd":          func(a []string) error { return raceDescriptor(a[0], num(a[1])) },
		"race-link":        func(a []string) error { return raceLink(a[0], a[1]) },
		"race-cwd":         func(a []string) error { return raceDirectory(a[0], a[1]) },
		"after-turn":       afterTurn,
		"serve-kept":       func([]string) error { return enforce.ServeKept() },
		"serve-kept-apart": func([]string) error { return serveKeptApart() },
		"undumpable":       func(a []string) error { return undumpable(a[0]) },
	}
}

// unixAddress is a struct sockaddr_un with a path that ends with the address.
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

// reach connects to the socket OUT/name, spelled in some way, from IN.
func reach(kind int, how, target string) error {
	addr, err := spell(how, target)
	if err != nil {
		return err
	}
	return rawConnect(kind, addr)
}

// spell writes the address of a socket in a way that a guard might misread.
func spell(how, target string) ([]byte, error) {
	dir, name := filepath.Split(target)
	open := func(path string) (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) }
	switch how {
	case "plain":
		return unixAddress(target), nil
	case "zero": // with the NUL byte and more behind it
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

// sendNamed sends a datagram by one of the calls that can.
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

// rawLength gives connect(2) an address of another length than it has.
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
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(fd), nil, 0); err != nil {
		return err
	}
	unix.Close(fd)
	control := make([]byte, 64)
	_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), control, 0)
	if err != nil {
		return err
	}
	msgs, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return err
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil {
		return err
	}
	return connectRaw(fds[0], unixAddress(path))
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

// linkSocket gives the socket outside another name.
func linkSocket(target, name string) error {
	if err := os.Link(target, name); err != nil {
		return err
	}
	return rawConnect(unix.SOCK_STREAM, unixAddress(name))
}

// moveSocket puts the socket outside, which lies in a writable directory, in
// the place of one of the session's own.
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

// moveThenListen does so before the session's own socket listens.
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

// twinInode makes a socket of the session's own, on another file system, with
// the inode number and the name of the socket outside, and goes to that before
// it listens: what the name leads to by then may be taken for its own.
func twinInode(target, dir string) error {
	var theirs, own unix.Stat_t
	if err := then(func() error { return unix.Stat(target, &theirs) }, func() error { return os.Chdir(dir) }); err != nil {
		return err
	}
	outside, name := filepath.Split(target)
	for own.Ino < theirs.Ino {
		fd, err := bindOwn(name)
		if err != nil {
			return err
		}
		if err := unix.Stat(name, &own); err != nil {
			return err
		}
		if own.Ino == theirs.Ino {
			return then(func() error { return os.Chdir(outside) }, func() error { return unix.Listen(fd, 1) },
				func() error { return rawConnect(unix.SOCK_STREAM, unixAddress(target)) })
		}
		unix.Close(fd)
		os.Remove(name)
	}
	return unix.ERANGE
}

// reuseInode had a socket that is gone; a program outside then makes one, by
// whose inode it may be taken for it.
func reuseInode(a []string) error {
	fd, err := serveOwn(a[0])
	if err != nil {
		return err
	}
	if err := rawConnect(unix.SOCK_STREAM, unixAddress(a[0])); err != nil {
		return err
	}
	unix.Close(fd)
	return then(func() error { return os.Remove(a[0]) }, func() error { return turn(a[1], a[2]) },
		func() error { return rawConnect(unix.SOCK_STREAM, unixAddress(a[0])) })
}

// takeOverName had an abstract name that a program outside has now.
func takeOverName(a []string) error {
	fd, err := serveOwn(a[0])
	if err != nil {
		return err
	}
	unix.Close(fd)
	return then(func() error { return turn(a[1], a[2]) },
		func() error { return rawConnect(unix.SOCK_STREAM, unixAddress("\x00"+a[0][1:])) })
}

// turn tells the test that it is its turn, and waits for it.
func turn(mine, yours string) error {
	if err := os.WriteFile(mine, nil, 0o666); err != nil {
		return err
	}
	for range 1000 {
		if _, err := os.Stat(yours); err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return syscall.ETIMEDOUT
}

// raceTime is how long a race goes on.
const raceTime = 1500 * time.Millisecond

// race makes one thread try while another one swaps. What came of it is seen
// by the program outside.
func race(swap func(i int), try func()) {
	stop := make(chan struct{})
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				swap(i)
			}
		}
	}()
	for end := time.Now().Add(raceTime); time.Now().Before(end); {
		try()
	}
	close(stop)
}

// raceMemory swaps the address between a socket of the session and one
// outside.
func raceMemory(target, own string) error {
	fd, err := serveOwn(own)
	if err != nil {
		return err
	}
	go drain(fd)
	addr := make([]byte, 110)
	both := [2][]byte{make([]byte, 110), make([]byte, 110)}
	copy(both[0], unixAddress(own))
	copy(both[1], unixAddress(target))
	race(func(i int) { copy(addr, both[i%2]) }, func() { rawConnect(unix.SOCK_STREAM, addr) })
	return nil
}

// drain accepts and hangs up.
func drain(fd int) {
	for {
		c, _, err := unix.Accept(fd)
		if err != nil {
			return
		}
		unix.Close(c)
	}
}

// raceDescriptor swaps the socket between one of the internet and a Unix
// socket, and the address with it.
func raceDescriptor(target string, port int) error {
	addr := make([]byte, 110)
	tcp := [110]byte{unix.AF_INET, 0, byte(port >> 8), byte(port), 127, 0, 0, 1}
	var local [110]byte
	copy(local[:], unixAddress(target))
	const fd = 50
	race(func(i int) {
		family, a := unix.AF_INET, tcp[:]
		if i%2 == 1 {
			family, a = unix.AF_UNIX, local[:]
		}
		s, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			unix.Dup3(s, fd, unix.O_CLOEXEC)
			copy(addr, a)
			unix.Close(s)
		}
	}, func() { connectRaw(fd, addr) })
	return nil
}

// raceLink swaps a link.
func raceLink(target, own string) error {
	fd, err := serveOwn(own)
	if err != nil {
		return err
	}
	go drain(fd)
	race(func(i int) {
		to := [2]string{own, target}[i%2]
		if os.Symlink(to, "next") == nil {
			os.Rename("next", "here")
		}
	}, func() { rawConnect(unix.SOCK_STREAM, unixAddress("here")) })
	return nil
}

// raceDirectory swaps the working directory.
func raceDirectory(target, own string) error {
	fd, err := serveOwn(own)
	if err != nil {
		return err
	}
	go drain(fd)
	dirs := [2]string{filepath.Dir(own), filepath.Dir(target)}
	race(func(i int) { os.Chdir(dirs[i%2]) }, func() { rawConnect(unix.SOCK_STREAM, unixAddress(filepath.Base(target))) })
	return nil
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
