package broker

import (
	"encoding/binary"
	"math"

	"golang.org/x/sys/unix"
)

// pair makes a pair of Unix datagram sockets for the caller. A real one could send to any
// address, which sendmsg(2) finds in memory, where no filter can look. So the command gets a
// SOCK_SEQPACKET pair, on which the kernel ignores addresses, and which gets no other peer. Such
// a pair keeps the limits of messages, too.
//
// If the second descriptor can't be given, the caller keeps the first one, which has no other
// end any more.
func (b *Broker) pair(c *Call) answer {
	const flags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK
	kind := uint32(c.args[1])
	protocol := uint32(c.args[2])
	at := c.args[3]
	if uint32(c.args[0]) != unix.AF_UNIX {
		return refused(unix.EOPNOTSUPP)
	}
	if kind&^(sockTypeMask|flags) != 0 {
		return refused(unix.EINVAL)
	}
	if protocol != 0 && protocol != unix.AF_UNIX {
		return refused(unix.EPROTONOSUPPORT)
	}
	if at > math.MaxInt64 {
		return refused(unix.EFAULT)
	}
	memory, errno := c.memory()
	if errno != 0 {
		return refused(errno)
	}
	var pair [2]int
	a := b.as(c, func() answer { // it makes sure that the memory is the caller's
		var out [8]byte
		if !whole(unix.Pread(memory, out[:], int64(at))) || !whole(unix.Pwrite(memory, out[:], int64(at))) {
			return refused(unix.EFAULT)
		}
		var err error
		kind := unix.SOCK_SEQPACKET | unix.SOCK_CLOEXEC | int(kind&unix.SOCK_NONBLOCK)
		pair, err = unix.Socketpair(unix.AF_UNIX, kind, 0)
		return refused(asErrno(err))
	})
	if a.errno != 0 {
		return a
	}
	// They must be closed before the answer. An end is closed only with its last copy.
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	var out [8]byte
	for i, fd := range pair {
		a = b.queue.give(c.id, fd, int(kind&unix.SOCK_CLOEXEC))
		if a.errno != 0 {
			return a
		}
		binary.NativeEndian.PutUint32(out[4*i:], uint32(a.val))
	}
	if !whole(unix.Pwrite(memory, out[:], int64(at))) {
		return refused(unix.EFAULT)
	}
	return answer{}
}

// sockTypeMask has the bits of a socket's type that are no flags (linux/net.h).
const sockTypeMask = 0xf

// whole reports whether a pair of descriptors was read or written.
func whole(n int, err error) bool { return n == 8 && err == nil }
