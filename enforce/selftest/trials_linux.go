package selftest

import (
	"os"
	"path/filepath"
	"slices"
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
	by := caps.SocketsBy()
	out := slices.Concat(s.fileTrials(caps), s.networkTrials(by), s.socketTrials(by, abstract), processTrials(caps), kernelTrials())
	if caps.Capabilities&(1<<unix.CAP_SYS_ADMIN) != 0 {
		out = append(out, one("capabilities", "root without the capabilities that builds don't need", "capset", setHostname()))
	}
	out = append(out, s.brokerTrials(caps)...)
	mounts, err := s.mountTrials(caps)
	return append(out, mounts...), err
}

// at is AT_FDCWD as an argument.
const at = ^uintptr(99)

// opening opens a file.
func opening(file string, flags uintptr) []fork.Step {
	return []fork.Step{callPath("openat(2)", unix.SYS_OPENAT, file, 1, at, 0, flags)}
}

// one is a trial of a single call.
func one(name, promise, means string, step fork.Step) trial {
	return trial{name: name, promise: promise, means: means, steps: []fork.Step{step}}
}

func (s *linuxScene) fileTrials(caps enforce.Caps) []trial {
	truncateBy := "Landlock"
	if caps.Landlock < 3 {
		truncateBy = "seccomp"
	}
	return []trial{
		{name: enforce.GapFiles, promise: "files are read only where allowed", means: "Landlock", steps: opening(s.dir+"/file", unix.O_RDONLY)},
		{name: enforce.GapFiles, promise: "files are written only where allowed", means: "Landlock", steps: opening(s.dir+"/file", unix.O_WRONLY)},
		{name: enforce.GapFiles, promise: "directories are listed only where allowed", means: "Landlock", steps: opening(s.dir+"/empty", unix.O_RDONLY|unix.O_DIRECTORY)},
		one(enforce.GapTruncate, "files are emptied only where they may be written: truncate(2)", truncateBy, callPath("truncate(2)", unix.SYS_TRUNCATE, s.dir+"/file", 0, 0, 1)),
	}
}

func (s *linuxScene) networkTrials(socketsBy string) []trial {
	closed := func(what, name string, family, kind uintptr) trial {
		return trial{name: enforce.GapNetwork, promise: "no network: " + what, means: "seccomp", net: policy.NetNone,
			steps: []fork.Step{call(name, unix.SYS_SOCKET, family, kind)}}
	}
	listed := func(what, means string, steps ...fork.Step) trial {
		return trial{name: enforce.GapTCPPorts, promise: "only the TCP ports that are listed" + what, means: means, net: policy.NetPorts, steps: steps}
	}
	to := loopback(s.port)
	connect := connectSteps("connect(2) to a TCP port", unix.AF_INET, to, unix.SizeofSockaddrInet4)
	return []trial{
		closed("TCP", "socket(2) TCP", unix.AF_INET, unix.SOCK_STREAM),
		closed("UDP", "socket(2) UDP", unix.AF_INET, unix.SOCK_DGRAM),
		closed("IPv6", "socket(2) IPv6", unix.AF_INET6, unix.SOCK_STREAM),
		listed("", socketsBy, connect...),
		listed(": fast open", "seccomp", connect[0], fastOpen(to)),
		listed(": UDP", "seccomp", call("socket(2) UDP", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM)),
	}
}

// loopback is a port of this machine's own.
func loopback(port int) uintptr {
	return put(unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}, Port: uint16(port>>8 | port<<8)})
}

// fastOpen connects while it sends (tcp(7)).
func fastOpen(to uintptr) fork.Step {
	return call("sendto(2) MSG_FASTOPEN", unix.SYS_SENDTO, 0, to, 1, unix.MSG_FASTOPEN, to, unix.SizeofSockaddrInet4)
}

func (s *linuxScene) socketTrials(socketsBy, abstract string) []trial {
	connect := func(gap, by, name, to string) trial {
		addr := unixAddr(to)
		return trial{name: gap, promise: "no connection to sockets of programs outside, by " + by, means: socketsBy,
			steps: connectSteps(name, unix.AF_UNIX, uintptr(unsafe.Pointer(&fork.PutSlice(&memory, addr)[0])), uintptr(len(addr)))}
	}
	return []trial{
		connect(enforce.GapUnixSockets, "path", "connect(2) to a path", s.dir+"/socket"),
		connect(enforce.GapAbstractSockets, "abstract name", "connect(2) to an abstract name", abstract),
	}
}

// signalTrials signal this very process, which takes no notice of it, or would
// have a file that is not open signal a group: of that the kernel says another error than the filter.
func signalTrials(caps enforce.Caps) []trial {
	const (
		urgent = uintptr(unix.SIGURG)
		noFile = ^uintptr(0)
	)
	by := "Landlock"
	if caps.SignalMode() == seccomp.SignalsAll {
		by = "zsbx"
	}
	pid := uintptr(os.Getpid())
	info := put(broker.Siginfo{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff}) // si_code: SI_QUEUE
	signal := func(means string, steps ...fork.Step) trial {
		return trial{name: enforce.GapSignals, promise: "no signals to processes outside: " + steps[len(steps)-1].Name, means: means, steps: steps}
	}
	return []trial{
		signal(by, call("kill(2)", unix.SYS_KILL, pid, urgent)),
		signal(by, call("tkill(2)", unix.SYS_TKILL, pid, urgent)),
		signal(by, call("tgkill(2)", unix.SYS_TGKILL, pid, pid, urgent)),
		signal(by, call("rt_sigqueueinfo(2)", unix.SYS_RT_SIGQUEUEINFO, pid, urgent, info)),
		signal(by, call("pidfd_open(2)", unix.SYS_PIDFD_OPEN, pid), call("pidfd_send_signal(2)", unix.SYS_PIDFD_SEND_SIGNAL, 0, urgent)),
		signal("seccomp", call("fcntl(2) F_SETOWN to a group", unix.SYS_FCNTL, noFile, unix.F_SETOWN, -pid)),
		signal("seccomp", call("fcntl(2) F_SETOWN_EX", unix.SYS_FCNTL, noFile, unix.F_SETOWN_EX)),
		signal("seccomp", call("fcntl(2) O_ASYNC", unix.SYS_FCNTL, noFile, unix.F_SETFL, unix.O_ASYNC)),
		signal("seccomp", call("fcntl(2) F_SETSIG", unix.SYS_FCNTL, noFile, unix.F_SETSIG, urgent)),
		signal("seccomp", call("ioctl(2) FIOSETOWN", unix.SYS_IOCTL, noFile, 0x8901)),
		signal("seccomp", call("ioctl(2) SIOCSPGRP", unix.SYS_IOCTL, noFile, 0x8902)),
	}
}

// processTrials act on this very process, and change nothing about it.
func processTrials(caps enforce.Caps) []trial {
	var limit unix.Rlimit
	_ = unix.Prlimit(0, unix.RLIMIT_CORE, nil, &limit)
	return append(signalTrials(caps),
		one(enforce.GapPriorities, "no change of limits and priorities of processes outside", "seccomp",
			call("prlimit64(2)", unix.SYS_PRLIMIT64, uintptr(os.Getpid()), unix.RLIMIT_CORE, put(limit))),
		// No terminal is needed: the kernel's answer about a descriptor
		// that isn't open is another error than the filter's.
		one(enforce.GapTerminal, "no typing into the caller's terminal", "seccomp", call("ioctl(2) TIOCSTI", unix.SYS_IOCTL, ^uintptr(0), unix.TIOCSTI)))
}

// kernelTrials make calls that would fail in any case, by another error.
func kernelTrials() (out []trial) {
	for _, c := range []fork.Step{
		call("io_uring_setup(2)", unix.SYS_IO_URING_SETUP),
		call("userfaultfd(2)", unix.SYS_USERFAULTFD, 1 /* UFFD_USER_MODE_ONLY */),
		call("keyctl(2)", unix.SYS_KEYCTL),
		call("unshare(2) CLONE_NEWUSER", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
	} {
		out = append(out, one(enforce.GapKernel, "system calls that builds don't need are closed: "+c.Name, "seccomp", c))
	}
	return out
}

// setHostname sets the machine's name to what it is.
func setHostname() fork.Step {
	var u unix.Utsname
	_ = unix.Uname(&u)
	name := unix.ByteSliceToString(u.Nodename[:])
	return call("sethostname(2)", unix.SYS_SETHOSTNAME, uintptr(unsafe.Pointer(memory.Text(name))), uintptr(len(name)))
}
