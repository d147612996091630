package selftest

import (
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// trials are the attacks of the self-test, in the order of the promises.
func (s *linuxScene) trials(caps enforce.Caps) ([]trial, error) {
	var st unix.Stat_t
	in := s.dir + "/in"
	if err := unix.Stat(in, &st); err != nil {
		return nil, err
	}
	access := policy.Read | policy.Write | policy.Exec
	s.policy = &policy.Resolved{OS: "linux", Dir: in, Net: policy.ResolvedNet{Mode: policy.NetOpen},
		Paths: []policy.Path{{Path: in, Access: access, Mode: os.ModeDir, ID: policy.FileID{Dev: st.Dev, Ino: st.Ino},
			Rule: policy.Rule{Path: in, Access: access, Origin: policy.Origin{Source: "self-test"}}}}}
	abstract := "@zsbx-check-" + filepath.Base(s.dir)
	if _, err := s.listen("unix", abstract); err != nil {
		return nil, err
	}
	out := s.fileTrials(caps)
	out = append(out, s.networkTrials(caps.SocketsBy())...)
	out = append(out, s.socketTrials(caps.SocketsBy(), abstract)...)
	out = append(out, processTrials(caps)...)
	out = append(out, kernelTrials()...)
	if caps.Capabilities&(1<<unix.CAP_SYS_ADMIN) != 0 {
		out = append(out, trial{name: "capabilities", promise: "root without the capabilities that builds don't need", means: "capset",
			net: policy.NetOpen, steps: []fork.Step{setHostname()}})
	}
	out = append(out, s.brokerTrials(caps)...)
	mounts, err := s.mountTrials(caps)
	return append(out, mounts...), err
}

// at is AT_FDCWD as an argument.
const at = ^uintptr(99)

func (s *linuxScene) fileTrials(caps enforce.Caps) []trial {
	open := func(file string, flags uintptr) []fork.Step {
		return []fork.Step{callPath("openat(2)", unix.SYS_OPENAT, s.dir+"/"+file, 1, at, 0, flags)}
	}
	truncateBy := "Landlock"
	if caps.Landlock < 3 {
		truncateBy = "seccomp"
	}
	return []trial{
		{name: enforce.GapFiles, promise: "files are read only where allowed", means: "Landlock", net: policy.NetOpen, steps: open("file", unix.O_RDONLY)},
		{name: enforce.GapFiles, promise: "files are written only where allowed", means: "Landlock", net: policy.NetOpen, steps: open("file", unix.O_WRONLY)},
		{name: enforce.GapFiles, promise: "directories are listed only where allowed", means: "Landlock", net: policy.NetOpen, steps: open("empty", unix.O_RDONLY|unix.O_DIRECTORY)},
		{name: enforce.GapTruncate, promise: "files are emptied only where they may be written", means: truncateBy, net: policy.NetOpen, steps: []fork.Step{callPath("truncate(2)", unix.SYS_TRUNCATE, s.dir+"/file", 0, 0, 1)}},
	}
}

func (s *linuxScene) networkTrials(socketsBy string) []trial {
	socket := func(name string, family, kind, proto uintptr) []fork.Step {
		return []fork.Step{call(name, unix.SYS_SOCKET, nil, family, kind, proto)}
	}
	addr := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}, Port: uint16(s.port>>8 | s.port<<8)}
	connect := connectSteps("connect(2) to a TCP port", unix.AF_INET, unix.SOCK_STREAM, unsafe.Pointer(addr), unix.SizeofSockaddrInet4, addr)
	fast := []fork.Step{connect[0], call("sendto(2) MSG_FASTOPEN", unix.SYS_SENDTO, addr,
		0, uintptr(unsafe.Pointer(addr)), 1, unix.MSG_FASTOPEN, uintptr(unsafe.Pointer(addr)), unix.SizeofSockaddrInet4)}
	return []trial{
		{name: enforce.GapNetwork, promise: "no network: TCP", means: "seccomp", net: policy.NetNone, steps: socket("socket(2) TCP", unix.AF_INET, unix.SOCK_STREAM, 0)},
		{name: enforce.GapNetwork, promise: "no network: UDP", means: "seccomp", net: policy.NetNone, steps: socket("socket(2) UDP", unix.AF_INET, unix.SOCK_DGRAM, 0)},
		{name: enforce.GapNetwork, promise: "no network: IPv6", means: "seccomp", net: policy.NetNone, steps: socket("socket(2) IPv6", unix.AF_INET6, unix.SOCK_STREAM, 0)},
		{name: enforce.GapTCPPorts, promise: "only the TCP ports that are listed", means: socketsBy, net: policy.NetPorts, steps: connect},
		{name: enforce.GapTCPPorts, promise: "only the TCP ports that are listed: fast open", means: "seccomp", net: policy.NetPorts, steps: fast},
		{name: enforce.GapTCPPorts, promise: "only the TCP ports that are listed: UDP", means: "seccomp", net: policy.NetPorts, steps: socket("socket(2) UDP", unix.AF_INET, unix.SOCK_DGRAM, 0)},
	}
}

func (s *linuxScene) socketTrials(socketsBy, abstract string) []trial {
	connect := func(name, to string) []fork.Step {
		addr, size := unixAddr(to)
		return connectSteps(name, unix.AF_UNIX, unix.SOCK_STREAM, addr, size, addr)
	}
	return []trial{
		{name: enforce.GapUnixSockets, promise: "no connection to sockets of programs outside, by path", means: socketsBy, net: policy.NetOpen, steps: connect("connect(2) to a path", s.dir+"/socket")},
		{name: enforce.GapAbstractSockets, promise: "no connection to sockets of programs outside, by abstract name", means: socketsBy, net: policy.NetOpen, steps: connect("connect(2) to an abstract name", abstract)},
	}
}

// signalTrials signal this very process, which takes no notice of it, or would
// have a file that is not open signal a group: of that the kernel says another error than the filter.
func signalTrials(caps enforce.Caps) []trial {
	const (
		promise = "no signals to processes outside"
		urgent  = uintptr(unix.SIGURG)
		noFile  = ^uintptr(0)
	)
	by := "Landlock"
	if caps.SignalMode() == seccomp.SignalsAll {
		by = "zsbx"
	}
	pid := uintptr(os.Getpid())
	info := &broker.Siginfo{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // si_code: SI_QUEUE
	one := func(means, name string, nr uintptr, keep any, args ...uintptr) trial {
		return trial{name: enforce.GapSignals, promise: promise + ": " + name, means: means, net: policy.NetOpen, steps: []fork.Step{call(name, nr, keep, args...)}}
	}
	return []trial{
		one(by, "kill(2)", unix.SYS_KILL, nil, pid, urgent),
		one(by, "tkill(2)", unix.SYS_TKILL, nil, pid, urgent),
		one(by, "tgkill(2)", unix.SYS_TGKILL, nil, pid, pid, urgent),
		one(by, "rt_sigqueueinfo(2)", unix.SYS_RT_SIGQUEUEINFO, info, pid, urgent, uintptr(unsafe.Pointer(info))),
		{name: enforce.GapSignals, promise: promise + ": pidfd_send_signal(2)", means: by, net: policy.NetOpen, steps: []fork.Step{
			call("pidfd_open(2)", unix.SYS_PIDFD_OPEN, nil, pid),
			call("pidfd_send_signal(2)", unix.SYS_PIDFD_SEND_SIGNAL, nil, 0, urgent)}},
		one("seccomp", "fcntl(2) F_SETOWN to a group", unix.SYS_FCNTL, nil, noFile, unix.F_SETOWN, -pid),
		one("seccomp", "fcntl(2) F_SETOWN_EX", unix.SYS_FCNTL, nil, noFile, unix.F_SETOWN_EX),
		one("seccomp", "fcntl(2) O_ASYNC", unix.SYS_FCNTL, nil, noFile, unix.F_SETFL, unix.O_ASYNC),
		one("seccomp", "fcntl(2) F_SETSIG", unix.SYS_FCNTL, nil, noFile, unix.F_SETSIG, urgent),
		one("seccomp", "ioctl(2) FIOSETOWN", unix.SYS_IOCTL, nil, noFile, 0x8901),
		one("seccomp", "ioctl(2) SIOCSPGRP", unix.SYS_IOCTL, nil, noFile, 0x8902),
	}
}

// processTrials act on this very process, and change nothing about it.
func processTrials(caps enforce.Caps) []trial {
	pid := uintptr(os.Getpid())
	limit := &unix.Rlimit{}
	_ = unix.Prlimit(0, unix.RLIMIT_CORE, nil, limit)
	return append(signalTrials(caps), []trial{
		{name: enforce.GapPriorities, promise: "no change of limits and priorities of processes outside", means: "seccomp", net: policy.NetOpen, steps: []fork.Step{call("prlimit64(2)", unix.SYS_PRLIMIT64, limit, pid, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(limit)))}},
		// No terminal is needed: the kernel's answer about a descriptor
		// that isn't open is another error than the filter's.
		{name: enforce.GapTerminal, promise: "no typing into the caller's terminal", means: "seccomp", net: policy.NetOpen, steps: []fork.Step{call("ioctl(2) TIOCSTI", unix.SYS_IOCTL, nil, ^uintptr(0), unix.TIOCSTI)}},
	}...)
}

// kernelTrials make calls that would fail in any case, by another error.
func kernelTrials() []trial {
	one := func(name string, nr uintptr, args ...uintptr) trial {
		return trial{name: enforce.GapKernel, promise: "system calls that builds don't need are closed: " + name, means: "seccomp", net: policy.NetOpen, steps: []fork.Step{call(name, nr, nil, args...)}}
	}
	return []trial{
		one("io_uring_setup(2)", unix.SYS_IO_URING_SETUP),
		one("userfaultfd(2)", unix.SYS_USERFAULTFD, 1 /* UFFD_USER_MODE_ONLY */),
		one("keyctl(2)", unix.SYS_KEYCTL),
		one("unshare(2) CLONE_NEWUSER", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
	}
}

// setHostname sets the machine's name to what it is.
func setHostname() fork.Step {
	var u unix.Utsname
	_ = unix.Uname(&u)
	name := unix.ByteSliceToString(u.Nodename[:])
	keep := append([]byte(name), 0)
	return call("sethostname(2)", unix.SYS_SETHOSTNAME, keep, uintptr(unsafe.Pointer(&keep[0])), uintptr(len(name)))
}
