package track

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readSmall reads a file of /proc into b, as far as it fits. It makes three
// system calls and no entry in Go's poller.
func readSmall(path string, b []byte) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	n := 0
	for n < len(b) {
		m, err := unix.Read(fd, b[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "read", Path: path, Err: err}
		}
		if m == 0 {
			break
		}
		n += m
	}
	return b[:n], nil
}

func procPath(pid int, file string) string {
	return "/proc/" + strconv.Itoa(pid) + "/" + file
}

// readProc looks at one process.
func readProc(pid int) (Proc, error) {
	var buf [1024]byte // the longest possible line is below that: 52 numbers of up to 20 digits never come together
	b, err := readSmall(procPath(pid, "stat"), buf[:])
	if err != nil {
		return Proc{}, err
	}
	p, err := parseStat(b)
	if err != nil {
		return Proc{}, fmt.Errorf("%s: %w", procPath(pid, "stat"), err)
	}
	return p, nil
}

// identify gives the identity of a process that runs now.
func identify(pid int) (ProcID, error) {
	if pid == 0 {
		return ProcID{}, nil
	}
	p, err := readProc(pid)
	return p.ProcID, err
}

// readTable takes a snapshot of all processes that /proc shows.
func readTable() (table, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	t := make(table, len(names))
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if p, err := readProc(pid); err == nil {
			t[pid] = p
		}
	}
	return t, nil
}

// fill adds what the processes say of themselves.
func fill(ps []Proc) {
	buf := make([]byte, maxArgv)
	for i := range ps {
		if b, err := readSmall(procPath(ps[i].Pid, "cmdline"), buf); err == nil {
			ps[i].Argv, _ = cutArgv(splitNul(b))
		}
	}
}

// readStatus looks at one process more closely. For the uid the owner of
// /proc/PID is no answer: files below it are root's for a process that is not
// dumpable.
func readStatus(pid int) (procStatus, error) {
	var buf [4096]byte
	b, err := readSmall(procPath(pid, "status"), buf[:])
	if err != nil {
		return procStatus{}, err
	}
	return parseStatus(b)
}

// sessionOf gives the session that the environment which pid was started with
// names, "" if none. A process can hide that, but it can't make it so for a
// process that it does not start.
func sessionOf(pid int) string {
	b, err := os.ReadFile(procPath(pid, "environ"))
	if err != nil {
		return ""
	}
	for _, v := range splitNul(b) {
		if id, ok := strings.CutPrefix(v, SessionEnv+"="); ok {
			return id
		}
	}
	return ""
}

// handle is a descriptor of one process, which no reuse of the number can
// change: see pidfd_open(2). It needs Linux 5.3.
type handle struct {
	fd int
	id ProcID
}

// errGone says that the process is no more, or is another one by now.
var errGone = errors.New("the process is gone")

// openProc opens the process that id names. Its start time is compared after
// the descriptor was opened, and the descriptor asked last whether the process
// still lives: so the time read was that of the process it stands for.
func openProc(id ProcID) (*handle, error) {
	if id.Pid <= 1 {
		return nil, errGone
	}
	fd, err := unix.PidfdOpen(id.Pid, 0)
	if err != nil {
		if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
			return nil, errGone
		}
		return nil, fmt.Errorf("pidfd_open(%d): %w", id.Pid, err)
	}
	h := &handle{fd: fd, id: id}
	p, err := readProc(id.Pid)
	if err == nil && p.Start != id.Start {
		err = errGone
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		err = errGone
	}
	if err == nil && h.ended() {
		err = errGone
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *handle) close() { unix.Close(h.fd) }

// ended reports whether the process has exited: a zombie has.
func (h *handle) ended() bool {
	p := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
	n, _ := unix.Poll(p, 0)
	return n > 0
}

// signal sends sig; errGone if the process was reaped.
func (h *handle) signal(sig unix.Signal) error {
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return errGone
	}
	return err
}

// machine says where we are: the names that make a pid unique.
func machine() (host, boot string, pidNS uint64, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", "", 0, fmt.Errorf("uname: %w", err)
	}
	var buf [64]byte
	b, err := readSmall("/proc/sys/kernel/random/boot_id", buf[:])
	if err != nil {
		return "", "", 0, err
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return "", "", 0, &os.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err}
	}
	return unix.ByteSliceToString(u.Nodename[:]), strings.TrimSpace(string(b)), st.Ino, nil
}
