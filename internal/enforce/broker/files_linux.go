package broker

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
)

// This file finds the files of the session's listening sockets. A path can lead elsewhere than
// when the socket was bound, so two things must agree.
//
// What sock_diag(7) tells of the socket's file must fit, and it must fit no other socket. That
// rules out all files of the same kind but those with the same inode number on another subvolume
// of btrfs(5), which share a device, and those whose numbers differ only in the upper 32 bits.
//
// The broker makes the socket listen, and the file must show that: nothing listened on it before,
// and something does afterwards. That rules out all but a socket that began to listen in these
// microseconds.
//
// The file then stays open, since its inode's number could be used again otherwise.
//
// Some programs rename or link the file before the socket listens, as supervisord does. Then the
// path does not lead to the file. See moved.

// pinned is the file of a listening socket, opened with O_PATH.
type pinned struct{ fd, kind int }

// mostFiles limits how many files are pinned, since each is an open file of zsbx. At most a
// quarter of the files that zsbx may open are.
const mostFiles = 512

// findFile makes a socket listen and pins the file that it is bound to. A socket that listens
// already was noted before, or it is not the session's. If the path does not lead to the file
// any more, the socket itself is noted. The error is EAGAIN if no more files can be pinned.
//
// Only listen(2) is made with the caller's rights. The caller may have given up those that the
// path needs, and learns nothing about what the path leads to.
func (b *Broker) findFile(c *Call, s socket, path string, backlog int) unix.Errno {
	listens, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	if err != nil || listens != 0 {
		return asErrno(err)
	}
	kind, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return asErrno(err)
	}
	r, errno := c.route(path)
	if errno != 0 {
		b.sockets.name(s.fd)
		return orNone(errno)
	}
	file, errno := c.walk(r)
	if errno != 0 {
		b.sockets.name(s.fd)
		return orNone(errno)
	}
	if fits, err := b.fits(c, s, file); !fits {
		b.sockets.name(s.fd)
		return orNone(asErrno(err))
	}
	errno = listenerOn(file, kind)
	if errno != unix.ECONNREFUSED {
		return orNone(errno)
	}
	a := b.as(c, func() answer { return refused(asErrno(unix.Listen(s.fd, backlog))) })
	if a.errno != 0 {
		return a.errno
	}
	errno = listenerOn(file, kind)
	if errno != 0 {
		return orNone(errno)
	}
	return b.sockets.pin(file, kind)
}

// fits reports whether an open file fits what the kernel tells of a socket's file, and whether the
// command could have made the file.
func (b *Broker) fits(c *Call, s socket, file int) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return false, err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(file, &fs); err != nil || fs.Flags&unix.ST_RDONLY != 0 {
		return false, err
	}
	device, err := c.from.fileSystem(file)
	if err != nil {
		return false, err
	}
	fits := false
	others := false
	mine := cookie(s.fd)
	this := kernelFile{uint32(st.Ino), device}
	err = boundSockets(s.fd, func(o *boundSocket) {
		if o.file == this {
			fits = fits || o.cookie == mine
			others = others || o.cookie != mine
		}
	})
	return err == nil && fits && !others, err
}

// moved reports whether an open file is that of a socket of the session whose path led elsewhere
// when it began to listen. No file is pinned for it, so the numbers that the kernel reports must
// be all there is: those of the file itself, on a file system that gives no two files the same. A
// socket keeps its file's number in use as long as it lives.
func (b *Broker) moved(c *Call, s socket, file int, st *unix.Stat_t) bool {
	var fs unix.Statfs_t
	err := unix.Fstatfs(file, &fs)
	if err != nil || fs.Type != unix.EXT4_SUPER_MAGIC && fs.Type != unix.TMPFS_MAGIC || st.Ino > math.MaxUint32 {
		return false
	}
	device, err := c.from.fileSystem(file)
	if err != nil || st.Dev != unix.Mkdev(device[0], device[1]) {
		return false
	}
	this := kernelFile{uint32(st.Ino), device}
	return b.sockets.ownsAll(s.fd, func(o *boundSocket) bool { return o.file == this })
}

// orNone returns EAGAIN for a shortage, and 0 for other errors.
func orNone(errno unix.Errno) unix.Errno {
	if errno != 0 && fork.ShortageOf(errno) != nil {
		return unix.EAGAIN
	}
	return 0
}

// listenerOn returns 0 if a socket of a kind listens on an open file, and ECONNREFUSED if none
// does. Nobody notices: it connects a socket that has a peer, which the kernel refuses, but only
// after it has found that the other one listens.
func listenerOn(file, kind int) unix.Errno {
	pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return asErrno(err)
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	errno := connect(pair[0], fileAddress(file))
	switch errno {
	case unix.EISCONN, unix.EINVAL, unix.EAGAIN: // EINVAL since Linux 6.11; EAGAIN: its queue is full
		return 0
	}
	return errno
}

// hasFile reports whether a file is that of a listening socket of the session.
func (o *sessionSockets) hasFile(id host.FileID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, ok := o.files[id]
	return ok
}

// pin keeps the file of a socket open. If there are too many, it first closes those of sockets
// that are gone.
func (o *sessionSockets) pin(file, kind int) unix.Errno {
	o.mu.Lock()
	defer o.mu.Unlock()
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return asErrno(err)
	}
	id := host.FileID{Dev: st.Dev, Ino: st.Ino}
	if _, ok := o.files[id]; ok {
		return 0
	}
	if len(o.files) >= most() {
		o.unpin()
	}
	if len(o.files) >= most() {
		return unix.EAGAIN
	}
	fd, err := unix.FcntlInt(uintptr(file), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return unix.EAGAIN
	}
	if o.files == nil {
		o.files = make(map[host.FileID]pinned)
	}
	o.files[id] = pinned{fd, kind}
	return 0
}

// unpin closes the files of sockets that no longer listen. Nothing can listen on such a file
// again: bind(2) always makes a new one.
func (o *sessionSockets) unpin() {
	for id, p := range o.files {
		if listenerOn(p.fd, p.kind) == unix.ECONNREFUSED {
			unix.Close(p.fd)
			delete(o.files, id)
		}
	}
}

// close closes all files.
func (o *sessionSockets) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.files {
		unix.Close(p.fd)
	}
	o.files = nil
}

// most returns how many files may be pinned.
func most() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return int(min(mostFiles, limit.Cur/4))
}
