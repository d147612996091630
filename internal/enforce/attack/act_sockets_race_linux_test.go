package attack_test

import (
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// twinInode makes a socket of the session, on another file system, with the inode number and
// the name of the socket outside. Before it listens it moves to the outside socket's directory,
// so that the one that the name now leads to may be mistaken for its own.
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

// twinNumber makes sockets until one has the inode number of the socket outside. It listens on that
// one and connects to the one outside.
func twinNumber(target, own string) error {
	var theirs, mine unix.Stat_t
	if err := unix.Stat(target, &theirs); err != nil {
		return err
	}
	for mine.Ino < theirs.Ino {
		fd, err := bindOwn(own)
		if err != nil {
			return err
		}
		if err := unix.Stat(own, &mine); err != nil {
			return err
		}
		if mine.Ino == theirs.Ino {
			return then(func() error { return unix.Listen(fd, 1) }, func() error { return rawConnect(unix.SOCK_STREAM, unixAddress(own)) },
				func() error { return rawConnect(unix.SOCK_STREAM, unixAddress(target)) })
		}
		unix.Close(fd)
		os.Remove(own)
	}
	return unix.ERANGE
}

// reuseInode closes and removes a socket. Then a program outside makes one with the same inode,
// which may be mistaken for the session's.
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

// takeOverName frees an abstract name, which a program outside then takes.
func takeOverName(a []string) error {
	fd, err := serveOwn(a[0])
	if err != nil {
		return err
	}
	unix.Close(fd)
	return then(func() error { return turn(a[1], a[2]) },
		func() error { return rawConnect(unix.SOCK_STREAM, unixAddress("\x00"+a[0][1:])) })
}

// turn tells the test that it is the test's turn, and waits until it is done.
func turn(mine, yours string) error {
	if err := os.WriteFile(mine, nil, 0o666); err != nil {
		return err
	}
	if !testkit.Within(testkit.Patience, func() bool { _, err := os.Stat(yours); return err == nil }) {
		return syscall.ETIMEDOUT
	}
	return nil
}

// raceTime is how long a race lasts.
const raceTime = 1500 * time.Millisecond

// race makes one thread try while another one swaps. The program outside sees the result.
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

// drain accepts connections and closes them.
func drain(fd int) {
	for {
		c, _, err := unix.Accept(fd)
		if err != nil {
			return
		}
		unix.Close(c)
	}
}

// raceDescriptor swaps the socket between an internet and a Unix socket, together with the
// address.
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

// raceStart makes sockets whose names lead to the socket outside when they begin to listen. One of
// them may do so at the very moment when the one outside does, which may be mistaken for it.
func raceStart(target, dir string) error {
	outside, name := filepath.Split(target)
	for end := time.Now().Add(raceTime); time.Now().Before(end); {
		if err := os.Chdir(dir); err != nil {
			return err
		}
		fd, err := bindOwn(name)
		if err != nil {
			return err
		}
		os.Remove(name)
		os.Chdir(outside)
		unix.Listen(fd, 1)
		rawConnect(unix.SOCK_STREAM, unixAddress(target))
		unix.Close(fd)
	}
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
