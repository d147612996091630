package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/procfs"
)

// Look looks at one process.
func Look(pid int) (Process, error) {
	s, err := procfs.Look(pid)
	return Process{ID: ID{Pid: s.Pid, Start: s.Start}, Parent: s.Parent, Group: s.Group, Session: s.Session, State: s.State, Name: s.Name}, err
}

// Snapshot lists all processes that /proc shows.
func Snapshot() (*Table, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	t := &Table{Procs: make(map[int]Process, len(entries))}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, err := Look(pid); err == nil {
				t.Procs[pid] = p
			}
		}
	}
	return t, nil
}

// Fill adds what the processes say of themselves.
func Fill(ps []Process) {
	buf := make([]byte, MaxBytes)
	for i := range ps {
		if b, err := files.ReadInto(procfs.Path(ps[i].Pid, "cmdline"), buf); err == nil {
			if args := strings.TrimRight(string(b), "\x00"); args != "" {
				ps[i].Argv = CutArgs(strings.Split(args, "\x00"))
			}
		}
	}
}

// Getenv gives a variable of the environment that a process was started with, or
// "". A process can hide that, but it can't make it so for a process that it does
// not start. hidden says that nobody of its user may read it, as ssh-agent(1) has
// it (PR_SET_DUMPABLE).
func Getenv(pid int, name string) (value string, hidden bool) {
	b, err := files.ReadInto(procfs.Path(pid, "environ"), make([]byte, 4096))
	if len(b) == 0 {
		// Where its first thread has ended, the process's own files are root's.
		if s, _ := procfs.LookAt(procfs.Path(pid, "")); s.State == "Z" && s.Threads > 1 {
			if t, ok := procfs.OtherThread(pid); ok {
				b, err = files.ReadInto(procfs.Path(pid, "task/"+strconv.Itoa(t.Pid)+"/environ"), make([]byte, 4096))
			}
		}
	}
	for v := range strings.SplitSeq(string(b), "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, false
		}
	}
	return "", errors.Is(err, os.ErrPermission)
}

// Here says where this process is. Where /proc is that of another PID namespace, every
// number in it means another process here: that is an error.
func Here() (Machine, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Machine{}, fmt.Errorf("uname: %w", err)
	}
	var buf [64]byte
	b, err := files.ReadInto("/proc/sys/kernel/random/boot_id", buf[:])
	if err != nil {
		return Machine{}, err
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return Machine{}, &os.PathError{Op: "stat", Path: "/proc/self/ns/pid", Err: err}
	}
	self, err := procfs.LookAt("/proc/self")
	if err == nil && self.Pid != os.Getpid() {
		err = fmt.Errorf("/proc is that of another PID namespace, in which this process is %d and not %d: mount one of this namespace there, as unshare --mount-proc does", self.Pid, os.Getpid())
	}
	return Machine{unix.ByteSliceToString(u.Nodename[:]), strings.TrimSpace(string(b)), st.Ino, ID{Pid: self.Pid, Start: self.Start}}, err
}

// Handle is a descriptor of one process, which no reuse of the number can
// change: see pidfd_open(2). It needs Linux 5.3.
type Handle struct {
	Process // as it was when it was opened
	fd      int
}

// ErrGone says that the process is no more, or is another one by now.
var ErrGone = errors.New("the process is gone")

// Gone reports whether err says that there is no such process.
func Gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// Open opens the process that id names. Its start time is compared after
// the descriptor was opened, and the descriptor asked last whether the process
// still lives: so the time read was that of the process it stands for.
func Open(id ID) (*Handle, error) {
	if id.Pid <= 1 {
		return nil, ErrGone
	}
	fd, err := unix.PidfdOpen(id.Pid, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd_open(%d): %w", id.Pid, err)
	}
	h := &Handle{fd: fd}
	h.Process, err = Look(id.Pid)
	if Gone(err) || err == nil && (h.Start != id.Start || h.ended(0)) {
		err = ErrGone
	}
	if err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Handle) Close() { unix.Close(h.fd) }

// ended reports whether the process has exited, within some milliseconds. A
// zombie has.
func (h *Handle) ended(wait int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, wait)
	if err != nil && !errors.Is(err, unix.EINTR) {
		Pause(time.Duration(wait) * time.Millisecond)
	}
	return n > 0
}

// Pause is time.Sleep without a timer of Go's runtime: see track.Within.
func Pause(d time.Duration) {
	left := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&left, nil)
}

// Wait waits until the process has ended or ctx is done, and reports the first.
func (h *Handle) Wait(ctx context.Context) bool {
	const slice = 50 // milliseconds in which to look at ctx
	for !h.ended(slice) {
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// Signal sends sig; ErrGone if the process was reaped.
func (h *Handle) Signal(sig unix.Signal) error {
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}
