package broker

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/fork"
)

// This file is the lowest layer of the broker: the kernel's queue, one call in, one answer out.
// broker_linux.go shares it among goroutines, call_linux.go decides, caller_linux.go examines
// the caller and acts with its rights. What was learned about a caller counts only if valid
// returns true afterwards.

// queue is the kernel's queue of calls that a filter hands over (seccomp_unotify(2)).
type queue struct {
	fd      int
	control func(fd int, request uintptr, arg unsafe.Pointer) unix.Errno // ioctl(2)
}

func newQueue(fd int) queue {
	return queue{fd, func(fd int, request uintptr, arg unsafe.Pointer) unix.Errno {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(arg))
		return errno
	}}
}

func (q *queue) close() {
	if q.control != nil {
		unix.Close(q.fd)
	}
}

// notification is struct seccomp_notif, response is struct seccomp_notif_resp
// (linux/seccomp.h).
type notification struct {
	id         uint64
	pid, flags uint32 // pid is the thread's number in this process's PID namespace, or 0
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type response struct {
	id    uint64
	val   int64
	errno int32 // negative
	flags uint32
}

// receive takes one call from the queue. It gets none if the caller was killed meanwhile or
// this thread was interrupted.
func (q *queue) receive(n *notification) (got bool, _ error) {
	*n = notification{}
	errno := q.ask(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(n))
	if errno == 0 || errno == unix.ENOENT || errno == unix.EINTR {
		return errno == 0, nil
	}
	return false, errno
}

// over reports whether no process has the filter any more. From then on receive does not block,
// since Linux 6.11.
func (q *queue) over() bool {
	p := []unix.PollFd{{Fd: int32(q.fd)}}
	n, _ := unix.Poll(p, 0)
	return n > 0 && p[0].Revents&unix.POLLHUP != 0
}

func (q *queue) ask(request uintptr, arg unsafe.Pointer) unix.Errno {
	return patiently(func() unix.Errno { return q.control(q.fd, request, arg) })
}

// attempts is how often a call that fails for lack of memory is made, a millisecond apart.
const attempts = 1000

// patiently repeats a call that fails for lack of a resource that others may free.
func patiently(call func() unix.Errno) (errno unix.Errno) {
	for range attempts {
		errno = call()
		switch errno {
		case unix.ENOMEM, unix.ENOBUFS, unix.EAGAIN:
			time.Sleep(time.Millisecond)
		default:
			return errno
		}
	}
	return errno
}

// send answers a call. If that fails it sends a refusal, and it returns an error only if that
// fails too. It is no error if nobody waits for the answer any more.
func (q *queue) send(id uint64, a answer) error {
	r := response{id: id, val: a.val, errno: -int32(a.errno)}
	if a.proceed {
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	for _, r := range []response{r, {id: id, errno: -int32(unix.EACCES)}} {
		switch q.repeated(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) {
		case 0, unix.ENOENT, unix.EINPROGRESS:
			return nil
		}
	}
	return errNoAnswer
}

// valid reports whether the thread that made a call still waits for the answer. If so, what was
// looked up by its number until now is not about a later thread with the same number.
func (q *queue) valid(id uint64) bool {
	return q.repeated(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}

// repeated is ask, repeated when a signal interrupts it.
func (q *queue) repeated(request uintptr, arg unsafe.Pointer) unix.Errno {
	for {
		if errno := q.ask(request, arg); errno != unix.EINTR {
			return errno
		}
	}
}

// wakeFast makes the calling thread hand its processor to the answering one, since Linux 6.6.
// Older kernels return EINVAL.
func (q *queue) wakeFast() {
	unix.Syscall(unix.SYS_IOCTL,
		uintptr(q.fd), unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
}

// handover passes the queue's descriptor from the child to this process, in one packet over a
// socket pair. The child gets the descriptor when it installs its filter.
type handover struct{ child, parent int }

func newHandover() (*handover, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair for the queue of socket calls: %w", err)
	}
	return &handover{child: pair[0], parent: pair[1]}, nil
}

// steps install the filter and send the queue's descriptor, as SCM_RIGHTS data (unix(7)) with
// one byte. The first step stores the descriptor in the message. The filter allows sendmsg(2)
// here, since it hands over only calls that give a socket a peer.
//
// Then the child closes its descriptor. Neither it nor the keeper has the other end. So if this
// process dies, the queue is gone, and calls that wait for an answer fail with ENOSYS, even
// execve(2) where all calls are recorded.
func (h *handover) steps(m *fork.Memory, f *seccomp.Filter) []fork.Step {
	control := fork.PutSlice(m, unix.UnixRights(-1))
	iov := fork.Put(m, unix.Iovec{Base: fork.Put(m, byte(0)), Len: 1})
	msg := fork.Put(m, unix.Msghdr{Iov: iov, Iovlen: 1, Control: &control[0], Controllen: uint64(len(control))})
	install := f.Step(m, listenerFlags())
	install.Out = (*uintptr)(unsafe.Pointer(&control[unix.CmsgLen(0)])) // the kernel reads the low half
	return []fork.Step{install, {
		Name: "sendmsg(2) of the queue of socket calls", Nr: unix.SYS_SENDMSG,
		Args: [6]uintptr{uintptr(h.child), uintptr(unsafe.Pointer(msg)), unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT},
	}, {Name: "close(2) of the queue of socket calls", Nr: unix.SYS_CLOSE, Back: [6]uint32{2}}}
}

// listenerFlags returns the flags for seccomp(2). With WAIT_KILLABLE_RECV (Linux 5.19) a signal
// does not restart a call while it is being answered. A kernel that lacks the flag returns
// EINVAL; one that has it fails on the missing program. Any other failure here will also happen
// with the real filter.
func listenerFlags() uintptr {
	flags := uintptr(seccomp.FilterSpecAllow | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	const wait = unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags|wait, 0)
	if errno != unix.EINVAL {
		flags |= wait
	}
	return flags
}

// forked closes this process's copy of the child's end. So receive notices if the child ends
// without sending.
func (h *handover) forked() {
	if h.child >= 0 {
		unix.Close(h.child)
	}
	h.child = -1
}

// receive waits for the descriptor. It returns errNoQueue if the child ended without sending
// it.
func (h *handover) receive() (int, error) {
	defer h.close()
	var data [1]byte
	control := make([]byte, unix.CmsgSpace(4))
	var n, flags int
	errno := patiently(func() unix.Errno {
		return fork.Retry(func() unix.Errno {
			var err error
			_, n, flags, _, err = unix.Recvmsg(h.parent, data[:], control, unix.MSG_CMSG_CLOEXEC)
			return asErrno(err)
		})
	})
	if errno == 0 && flags&unix.MSG_CTRUNC != 0 { // no free descriptor number: unix(7)
		errno = unix.EMFILE
	}
	if errno != 0 {
		return -1, fmt.Errorf("receiving the queue of socket calls: %w", errno)
	}
	if msgs, _ := unix.ParseSocketControlMessage(control[:n]); len(msgs) == 1 {
		if fds, _ := unix.ParseUnixRights(&msgs[0]); len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errNoQueue
}

func (h *handover) close() { unix.Close(h.parent) }
