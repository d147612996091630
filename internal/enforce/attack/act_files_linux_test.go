package attack_test

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// fileActs act on the files in the arguments.
func fileActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"nothing":   func([]string) error { return nil },
		"read":      func(a []string) error { return open(a[0], unix.O_RDONLY) },
		"write":     func(a []string) error { return open(a[0], unix.O_WRONLY) },
		"append":    func(a []string) error { return open(a[0], unix.O_WRONLY|unix.O_APPEND) },
		"readwrite": func(a []string) error { return open(a[0], unix.O_RDWR) },
		"create":    func(a []string) error { return open(a[0], unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL) },
		"tmpfile":   func(a []string) error { return open(a[0], unix.O_RDWR|unix.O_TMPFILE) },
		"list":      func(a []string) error { return open(a[0], unix.O_RDONLY|unix.O_DIRECTORY) },
		"openat2":   openat2,
		"truncate":  func(a []string) error { return unix.Truncate(a[0], 0) },
		"trunc-ro":  func(a []string) error { return emptied(a[0], unix.O_RDONLY|unix.O_TRUNC) },
		"trunc-3":   func(a []string) error { return emptied(a[0], 3|unix.O_TRUNC) },
		"trunc-wo":  func(a []string) error { return emptied(a[0], unix.O_WRONLY|unix.O_TRUNC) },
		"ftruncate": ftruncate,
		"ioctl-rw":  func(a []string) error { return entropy(unix.Open(a[0], unix.O_RDWR|unix.O_CLOEXEC, 0)) },
		"ioctl-3":   func(a []string) error { return entropy(unix.Open(a[0], 3|unix.O_CLOEXEC, 0)) },
		"ioctl-3-2": func(a []string) error {
			return entropy(unix.Openat2(unix.AT_FDCWD, a[0], &unix.OpenHow{Flags: 3 | unix.O_CLOEXEC}))
		},
		"exec":      func(a []string) error { return unix.Exec(a[0], a, nil) },
		"mkdir":     func(a []string) error { return unix.Mkdir(a[0], 0o755) },
		"rmdir":     func(a []string) error { return unix.Rmdir(a[0]) },
		"unlink":    func(a []string) error { return unix.Unlink(a[0]) },
		"symlink":   func(a []string) error { return unix.Symlink("x", a[0]) },
		"mkfifo":    func(a []string) error { return unix.Mknod(a[0], unix.S_IFIFO|0o600, 0) },
		"mkreg":     func(a []string) error { return unix.Mknod(a[0], unix.S_IFREG|0o600, 0) },
		"mkchar":    func(a []string) error { return unix.Mknod(a[0], unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
		"mkblock":   func(a []string) error { return unix.Mknod(a[0], unix.S_IFBLK|0o600, int(unix.Mkdev(7, 0))) },
		"mksock":    func(a []string) error { return unix.Mknod(a[0], unix.S_IFSOCK|0o600, 0) },
		"link":      func(a []string) error { return unix.Link(a[0], a[1]) },
		"rename":    func(a []string) error { return unix.Rename(a[0], a[1]) },
		"exchange":  func(a []string) error { return rename2(a[0], a[1], unix.RENAME_EXCHANGE) },
		"reopen":    reopen,
		"handle":    openByHandle,
		"inherited": func(a []string) error { _, err := unix.Write(num(a[0]), []byte("x")); return err },
		"bind-unix": func(a []string) error { return bindUnix(a[0]) },
		"chroot": func(a []string) error {
			return then(func() error { return unix.Chroot(a[0]) }, func() error { return open("/file", unix.O_RDONLY) })
		},
		"dirfd":      dirfd,
		"mmap-write": mmapWrite,

		// Landlock does not check these; see TestKnownLimits.
		"stat":         func(a []string) error { var st unix.Stat_t; return unix.Stat(a[0], &st) },
		"chdir":        func(a []string) error { return unix.Chdir(a[0]) },
		"chmod":        func(a []string) error { return unix.Chmod(a[0], 0o600) },
		"utime":        func(a []string) error { return unix.Utimes(a[0], make([]unix.Timeval, 2)) },
		"setxattr":     func(a []string) error { return unix.Setxattr(a[0], "user.zsbx", []byte("x"), 0) },
		"mark a layer": func(a []string) error { return unix.Setxattr(a[0], overlayMark, []byte("y"), 0) },
		"path":         func(a []string) error { return open(a[0], unix.O_PATH) },
		"memfd":        execMemfd,
		"lease": func(a []string) error {
			return reading(a[0], func(fd int) error {
				_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
				return err
			})
		},
		"delegation": func(a []string) error {
			return reading(a[0], func(fd int) error {
				d := struct { // struct delegation (linux/fcntl.h)
					flags    uint32
					kind, _p uint16
				}{kind: unix.F_RDLCK}
				const setDeleg = 1040 // F_SETDELEG
				_, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(fd), setDeleg, uintptr(unsafe.Pointer(&d)))
				if errno != 0 {
					return errno
				}
				return nil
			})
		},
		"flock": func(a []string) error {
			return reading(a[0], func(fd int) error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
		},
		"read-lock": func(a []string) error {
			return reading(a[0], func(fd int) error {
				return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
			})
		},
		"inotify": func(a []string) error {
			fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
			if err == nil {
				_, err = unix.InotifyAddWatch(fd, a[0], unix.IN_ALL_EVENTS)
			}
			return err
		},
	}
}

// reading does something with a file that is open for reading.
func reading(name string, do func(fd int) error) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return do(fd)
}

func rename2(from, to string, flags uint) error {
	return unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
}

func openat2(a []string) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, a[0], &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_TRUNC | unix.O_CLOEXEC})
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// entropy asks an open random device how much entropy it has.
func entropy(fd int, err error) error {
	if err == nil {
		_, err = unix.IoctlGetInt(fd, unix.RNDGETENTCNT)
		unix.Close(fd)
	}
	return err
}

// emptied opens a file in a way that empties it, and returns an error if it did not.
func emptied(path string, flags int) error {
	if err := open(path, flags); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if st.Size != 0 {
		return fmt.Errorf("%s was opened and has its content", path)
	}
	return nil
}

func ftruncate(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Ftruncate(fd, 0)
}

// reopen opens a file for reading and then, through its descriptor, for writing.
func reopen(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("for reading: %v", err)
	}
	defer unix.Close(fd)
	return open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDWR)
}

// dirfd opens a directory without reading it and a file below it.
func dirfd(a []string) error {
	dir, err := unix.Open(a[0], unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the directory: %v", err)
	}
	defer unix.Close(dir)
	fd, err := unix.Openat(dir, a[1], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func openByHandle(a []string) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
	if err != nil {
		return fmt.Errorf("name_to_handle_at: %v", err)
	}
	mount, err := unix.Open(a[1], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mount: %v", err)
	}
	fd, err := unix.OpenByHandleAt(mount, h, unix.O_RDONLY|unix.O_CLOEXEC)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func bindUnix(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: path})
}

// mmapWrite maps a file that is open for reading privately, and then asks for a shared writable
// mapping.
func mmapWrite(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("for reading: %v", err)
	}
	defer unix.Close(fd)
	_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return err
}

// execMemfd executes a copy of a program in memory.
func execMemfd(a []string) error {
	data, err := os.ReadFile(a[0])
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("x", 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fd, data); err != nil {
		return err
	}
	empty := [1]byte{}
	argv := []*byte{&empty[0], nil}
	_, _, errno := syscall.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&empty[0])),
		uintptr(unsafe.Pointer(&argv[0])), 0, unix.AT_EMPTY_PATH, 0)
	return errno
}
