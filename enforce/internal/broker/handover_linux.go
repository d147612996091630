package broker

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
)

// handover carries the descriptor of the kernel's queue from the child, which
// gets it when it installs its filter, to the supervisor: over a pair of
// sockets, one packet.
type handover struct{ child, parent int }

func newHandover() (*handover, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("socketpair for the queue of socket calls: %w", err)
	}
	return &handover{child: pair[0], parent: pair[1]}, nil
}

// steps install the filter and send the queue's descriptor, which closes on
// exec in the child: one byte and, as ancillary data (unix(7), SCM_RIGHTS), the
// descriptor, which the first step puts there. The filter lets sendmsg(2) pass: what is
// mediated is only what gives a socket a peer.
//
// Then the child gives its own descriptor up, and lacks the other end as the keeper does:
// should this process die first, nobody holds the queue, and what waits for an answer by
// then, execve(2) itself where all is watched, fails with ENOSYS.
func (h *handover) steps(m *fork.Memory, f *seccomp.Filter) []fork.Step {
	control := fork.PutSlice(m, unix.UnixRights(-1))
	iov := fork.Put(m, unix.Iovec{Base: fork.Put(m, byte(0)), Len: 1})
	msg := fork.Put(m, unix.Msghdr{Iov: iov, Iovlen: 1, Control: &control[0], Controllen: uint64(len(control))})
	install := f.Step(m, listenerFlags())
	install.Out = (*uintptr)(unsafe.Pointer(&control[unix.CmsgLen(0)])) // the kernel reads the low half
	return []fork.Step{install, {
		Name: "sendmsg(2) of the queue of socket calls", Nr: unix.SYS_SENDMSG,
		Args: [6]uintptr{uintptr(h.child), uintptr(unsafe.Pointer(msg)), unix.MSG_NOSIGNAL | unix.MSG_DONTWAIT},
	}, {Name: "close(2) of the queue of socket calls", Nr: unix.SYS_CLOSE, Back: [6]uint16{2}}}
}

// listenerFlags are those of seccomp(2). With WAIT_KILLABLE_RECV (Linux 5.19)
// a signal doesn't make the command's call again while it is being answered.
// A kernel that does not know it says EINVAL; one that does gets as far as the
// missing program. Whatever else goes wrong here does so with the filter, too.
func listenerFlags() uintptr {
	flags := uintptr(seccomp.FilterSpecAllow | unix.SECCOMP_FILTER_FLAG_NEW_LISTENER)
	const wait = unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags|wait, 0); errno != unix.EINVAL {
		flags |= wait
	}
	return flags
}

// forked gives up the child's end, which the child has by then: when it ends
// without having sent anything, receive sees that.
func (h *handover) forked() {
	if h.child >= 0 {
		unix.Close(h.child)
	}
	h.child = -1
}

// receive waits for the descriptor. errNoQueue says that the child ended before.
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
	if errno == 0 && flags&unix.MSG_CTRUNC != 0 { // unix(7): there was no descriptor to be had
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
