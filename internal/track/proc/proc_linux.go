package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	return Process{
		ID:     ID{Pid: s.Pid, Start: s.Start},
		Parent: s.Parent, Group: s.Group, Session: s.Session,
		State: s.State, Name: s.Name,
	}, err
}

// Snapshot lists all processes that /proc shows.
func Snapshot() (*Table, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	t := &Table{Procs: make(map[int]Process, len(entries))}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		p, err := look(pid)
		switch {
		case err == nil:
			t.Procs[pid] = p
		case !gone(err):
			return nil, err
		}
	}
	return t, nil
}

// look is replaced by tests.
var look = Look

// gone reports whether an error of Look says that the process has ended or that /proc hides it
// (hidepid). With any other it may live.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, fs.ErrPermission)
}

// Fill adds the arguments that the processes show.
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

// Getenv returns a variable of the environment that a process was started with, or "". A
// process can forge that for itself and for processes that it starts, but not for others.
// hidden says that its user may not read it, as for ssh-agent(1) (PR_SET_DUMPABLE).
func Getenv(pid int, name string) (value string, hidden bool) {
	b, err := files.ReadInto(procfs.Path(pid, "environ"), make([]byte, 4096))
	if len(b) == 0 {
		// If its first thread has ended, the process's own files belong to root.
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

// Here says where this process is. It returns an error if /proc is that of another PID
// namespace, whose numbers mean other processes here.
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
		err = fmt.Errorf("/proc belongs to another PID namespace, where this process is %d and not %d: "+
			"mount the one of this namespace, as unshare --mount-proc does", self.Pid, os.Getpid())
	}
	return Machine{
		Host:       unix.ByteSliceToString(u.Nodename[:]),
		Boot:       strings.TrimSpace(string(b)),
		PidNS:      st.Ino,
		Supervisor: ID{Pid: self.Pid, Start: self.Start},
	}, err
}

// Handle is a descriptor of one process (pidfd_open(2), Linux 5.3). Reuse of the number can't
// change which one.
type Handle struct {
	Process // as it was when opened
	fd      int
}

// ErrGone says that the process is gone, or that its number has another one now.
var ErrGone = errors.New("the process is gone")

// Gone reports whether err says that there is no such process.
func Gone(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) }

// Open opens the process with an ID. It compares the start time after opening the descriptor,
// and then checks with the descriptor that the process still lives. So the start time was that
// of the descriptor's process.
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

// ended reports whether the process exits within wait milliseconds. A zombie has exited.
func (h *Handle) ended(wait int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}, wait)
	if err != nil && !errors.Is(err, unix.EINTR) {
		Pause(time.Duration(wait) * time.Millisecond)
	}
	return n > 0
}

// Pause is time.Sleep without a timer of Go's: see track.WithTimeout.
func Pause(d time.Duration) {
	left := unix.NsecToTimespec(d.Nanoseconds())
	_ = unix.Nanosleep(&left, nil)
}

// Wait waits until the process has ended, ctx is done or d is over. It reports whether the
// process has ended.
func (h *Handle) Wait(ctx context.Context, d time.Duration) bool {
	const slice = 50 // milliseconds in which to look at the time and at ctx
	end := time.Now().Add(d)
	for !h.ended(slice) {
		if ctx.Err() != nil || time.Now().After(end) {
			return false
		}
	}
	return true
}

// Signal sends sig. It returns ErrGone if the process was reaped.
func (h *Handle) Signal(sig unix.Signal) error {
	err := unix.PidfdSendSignal(h.fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	return err
}
