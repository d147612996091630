//go:build linux && amd64

package faults

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probeStatus is the probe's exit status when it did all it could.
const probeStatus = 42

// fillLines is how many lines it prints beside its findings: more than fit into a pipe.
const fillLines = 3000

// escape is one thing that a command under limits must not do. An error says that it could not.
type escape struct {
	name string
	gap  string // the name of the gap by which zsbx says that it is open
	try  func(s *scene) error
}

func escapes() []escape {
	return []escape{
		{"read a denied file", "deny", func(s *scene) error { return open(s.work()+"/.env", unix.O_RDONLY) }},
		{"read a file outside", "files", func(s *scene) error { return open(s.Dir+"/out/secret", unix.O_RDONLY) }},
		{"write a file outside", "files", func(s *scene) error { return open(s.Dir+"/out/file", unix.O_WRONLY) }},
		{"make a file outside", "files", func(s *scene) error { return open(s.Dir+"/out/new", unix.O_WRONLY|unix.O_CREAT) }},
		{"empty a file outside", "truncate", func(s *scene) error { return unix.Truncate(s.Dir+"/out/short", 0) }},
		{"list a directory outside", "files", func(s *scene) error { return open(s.Dir+"/out/dir", unix.O_RDONLY|unix.O_DIRECTORY) }},
		{"remove a file outside", "files", func(s *scene) error { return unix.Unlink(s.Dir + "/out/gone") }},
		{"link a file outside", "files", func(s *scene) error { return unix.Link(s.Dir+"/out/link", s.work()+"/linked") }},
		{"execute a file outside", "files", func(s *scene) error { return exec.Command(s.Dir+"/out/prog", "probe", "nothing").Run() }},
		{"chmod outside", "metadata", func(s *scene) error { return unix.Chmod(s.Dir+"/out/file", 0o600) }},
		{"utimes outside", "metadata", func(s *scene) error { return os.Chtimes(s.Dir+"/out/file", time.Now(), time.Now()) }},
		{"change git's configuration", "protect", func(s *scene) error { return open(s.work()+"/.git/config", unix.O_WRONLY) }},
		{"change zsbx's records", "own-files", func(s *scene) error { return open(s.Dir+"/state/forged", unix.O_WRONLY|unix.O_CREAT) }},
		{"connect by TCP", "network", func(s *scene) error {
			return connect(unix.AF_INET, unix.SOCK_STREAM, &unix.SockaddrInet4{Port: s.TCP, Addr: [4]byte{127, 0, 0, 1}})
		}},
		{"send by UDP", "network", func(s *scene) error { return datagram(s.UDP) }},
		{"connect to a socket outside", "unix-sockets", func(s *scene) error {
			return connect(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: s.Dir + "/out/socket"})
		}},
		{"connect to an abstract socket", "abstract-sockets", func(s *scene) error {
			return connect(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: s.Abstract})
		}},
		{"signal a process outside", "signals", func(s *scene) error { return unix.Kill(s.Pid, unix.SIGWINCH) }},
		{"lower a priority outside", "priorities", func(s *scene) error { return unix.Setpriority(unix.PRIO_PROCESS, s.Pid, 0) }},
		{"trace a process outside", "signals", func(s *scene) error { return unix.PtraceSeize(s.Pid) }},
		{"System V memory outside", "ipc", func(s *scene) error { _, err := unix.SysvShmAttach(s.Shm, 0, unix.SHM_RDONLY); return err }},
		{"POSIX memory outside", "ipc", func(s *scene) error { return open(s.ShmFile, unix.O_RDWR) }},
		{"open another terminal", "terminals", func(s *scene) error { return open(s.Terminal, unix.O_RDWR|unix.O_NOCTTY) }},
		{"io_uring", "kernel", func(*scene) error {
			var params [120]byte
			_, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
			return fail(errno)
		}},
		{"keyrings", "kernel", func(*scene) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_SESSION_KEYRING, true)
			return err
		}},
	}
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func connect(family, kind int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, to)
}

// datagram sends one to a port of this machine, and fails if nobody got it. A network without
// anything else has the address, too: there the port is closed, which the next call on the socket says
// (udp(7)).
func datagram(port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte("x")); err != nil {
		return err
	}
	if _, err := unix.Read(fd, make([]byte, 1)); err != unix.EAGAIN {
		return err
	}
	return nil
}

func fail(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// probe is the command. It reports what was open, leaves a daemon, prints a lot, and ends with a
// status of its own.
func probe(args []string) int {
	mode := args[0]
	if mode == "nothing" {
		return 0
	}
	if mode == "linger" {
		time.Sleep(10 * time.Minute)
		return 0
	}
	var s scene
	if err := json.Unmarshal([]byte(args[len(args)-1]), &s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT) // Go's own output would look like zsbx's
	go func() { <-quit; os.Exit(131) }()
	_ = os.WriteFile(s.work()+"/ran", nil, 0o600)
	var b strings.Builder
	b.WriteString("BEGIN\n")
	for _, e := range escapes() {
		if e.try(&s) == nil {
			fmt.Fprintf(&b, "open\t%s\t%s\n", e.gap, e.name)
		}
	}
	c := exec.Command(s.work()+"/probe", "probe", "linger", s.Token)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	_ = c.Start()
	for i := range fillLines {
		fmt.Fprintf(&b, "line %06d of much\n", i)
	}
	b.WriteString("END\n")
	if mode == "slow" {
		time.Sleep(40 * time.Millisecond)
	}
	for out := []byte(b.String()); len(out) > 0; {
		n, err := os.Stdout.Write(out)
		if err != nil {
			return 1
		}
		out = out[n:]
	}
	return probeStatus
}
