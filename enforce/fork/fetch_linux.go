package fork

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Fetcher has a keeper look into the processes of its session. The keeper is
// an ancestor of them all, and stays one when its caller leaves: where the Yama
// security module lets ancestors only look (kernel.yama.ptrace_scope is 1),
// nobody else can do it for a user.
type Fetcher struct {
	mu   sync.Mutex
	conn int
}

// NewFetcher uses a connection that Process.Line gave.
func NewFetcher(line int) *Fetcher { return &Fetcher{conn: line} }

// Line gives a copy of the connection to the keeper, for a process that goes on
// when this one leaves; nil without a keeper. A keeper takes its caller to be
// there for as long as somebody has the connection. With Next, this process
// would take away what the other one is told.
func (p *Process) Line() (*os.File, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.KeeperPid == 0 || p.conn < 0 {
		return nil, nil
	}
	fd, err := unix.FcntlInt(uintptr(p.conn), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "keeper"), nil
}

// Memory reads memory of a thread, as process_vm_readv(2) does, into buf, which
// has at most 4096 bytes, and says how much it could read.
func (f *Fetcher) Memory(tid int, at uint64, buf []byte) (int, unix.Errno) {
	n, _, errno := f.ask(message{kind: msgMemory, arg: uint32(tid), n: uint32(len(buf)), at: at}, buf)
	return n, errno
}

// Descriptor copies a descriptor of a process, as pidfd_open(2) with these flags
// and then pidfd_getfd(2) do.
func (f *Fetcher) Descriptor(pid, flags, fd int) (int, unix.Errno) {
	_, got, errno := f.ask(message{kind: msgSocket, arg: uint32(pid), flags: uint32(flags), n: uint32(fd)}, nil)
	if errno == 0 && got < 0 {
		errno = unix.EPROTO
	}
	return got, errno
}

// ask sends a request and waits for its answer. What else the keeper says is
// news for a caller that has left.
func (f *Fetcher) ask(m message, buf []byte) (n, fd int, _ unix.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	head := unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m))
	if err := unix.Sendto(f.conn, head, unix.MSG_NOSIGNAL, nil); err != nil {
		return 0, -1, unix.ESRCH
	}
	control := make([]byte, unix.CmsgSpace(4))
	for {
		got, cn, _, _, err := unix.RecvmsgBuffers(f.conn, [][]byte{head, buf}, control, unix.MSG_CMSG_CLOEXEC)
		switch {
		case err == unix.EINTR, err == nil && got >= len(head) && m.kind != msgFetched:
			continue
		case err != nil || got < len(head):
			return 0, -1, unix.ESRCH // the keeper is gone, and the session with it
		}
		if r := int32(m.arg); r < 0 {
			return 0, -1, unix.Errno(-r)
		}
		return got - len(head), passed(control[:cn]), 0
	}
}

// passed is the descriptor that came with a message, or -1.
func passed(control []byte) int {
	msgs, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(msgs) != 1 {
		return -1
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return -1
	}
	return fds[0]
}

// fetchMem is what the keeper needs to answer a Fetcher: struct msghdr of
// socket(7), struct iovec and struct cmsghdr, without pointers in Go's sense.
type fetchMem struct {
	header struct {
		name, nameSize       uintptr
		vectors, count       uintptr
		control, controlSize uintptr
		flags                uintptr
	}
	vectors [2]struct{ base, size uintptr }
	control struct {
		size        uintptr
		level, kind int32
		fd, _       int32
	}
}

// lookInto answers m.msg. Raw.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (m *keeperMem) lookInto() {
	f, q := &m.fetch, &m.msg
	r, data, fd := 0, uintptr(0), -1
	if q.kind == msgMemory {
		size := min(uintptr(q.n), unsafe.Sizeof(m.text))
		f.vectors[0].base, f.vectors[0].size = uintptr(unsafe.Pointer(&m.text)), size
		f.vectors[1].base, f.vectors[1].size = uintptr(q.at), size
		r = call(unix.SYS_PROCESS_VM_READV, uintptr(q.arg), uintptr(unsafe.Pointer(&f.vectors[0])), 1, uintptr(unsafe.Pointer(&f.vectors[1])), 1, 0)
		data = uintptr(max(r, 0))
	} else if r = call(unix.SYS_PIDFD_OPEN, uintptr(q.arg), uintptr(q.flags), 0, 0, 0, 0); r >= 0 {
		process := uintptr(r)
		r = call(unix.SYS_PIDFD_GETFD, process, uintptr(q.n), 0, 0, 0, 0)
		call(unix.SYS_CLOSE, process, 0, 0, 0, 0, 0)
		fd = r
	}
	if r >= 0 {
		r = int(data)
	}
	q.kind, q.arg = msgFetched, uint32(r)
	f.vectors[0].base, f.vectors[0].size = uintptr(unsafe.Pointer(q)), unsafe.Sizeof(*q)
	f.vectors[1].base, f.vectors[1].size = uintptr(unsafe.Pointer(&m.text)), data
	f.header.vectors, f.header.count = uintptr(unsafe.Pointer(&f.vectors)), 2
	f.header.control, f.header.controlSize = 0, 0
	if fd >= 0 {
		f.control.size, f.control.level, f.control.kind, f.control.fd = unix.SizeofCmsghdr+4, unix.SOL_SOCKET, unix.SCM_RIGHTS, int32(fd)
		f.header.control, f.header.controlSize = uintptr(unsafe.Pointer(&f.control)), unsafe.Sizeof(f.control)
	}
	call(unix.SYS_SENDMSG, uintptr(m.conn), uintptr(unsafe.Pointer(&f.header)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0, 0)
	if fd >= 0 {
		call(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
	}
}
