package selftest

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/broker"
	"github.com/zsbx/zsbx/enforce/internal/seccomp"
	"github.com/zsbx/zsbx/policy"
)

// addTrials adds the attacks of the self-test, in the order of the promises.
func (s *linuxScene) addTrials() error {
	var st unix.Stat_t
	in := s.dir + "/in"
	if err := unix.Stat(in, &st); err != nil {
		return err
	}
	access := policy.Read | policy.Write | policy.Exec
	s.policy = policy.Resolved{OS: "linux", Dir: in, Net: policy.ResolvedNet{Mode: policy.NetOpen},
		Paths: []policy.Path{{Path: in, Access: access, Mode: os.ModeDir, ID: policy.FileID{Dev: st.Dev, Ino: st.Ino},
			Rule: policy.Rule{Path: in, Access: access, Origin: policy.Origin{Source: "self-test"}}}}}
	open := enforce.NewPlan(&s.policy, s.caps, nil)
	s.addFiles(open)
	s.addNetwork()
	if err := s.addSockets(open); err != nil {
		return err
	}
	s.addSignals(open)
	s.addOther(open)
	return s.addMounts()
}

func (s *linuxScene) addFiles(open *enforce.Plan) {
	file, prog, truncateBy := s.dir+"/file", s.dir+"/prog", "Landlock"
	if s.caps.Landlock < 3 {
		truncateBy = "seccomp"
	}
	s.add(enforce.GapFiles, "files are read only where allowed", "Landlock", open, opening(file, unix.O_RDONLY))
	s.add(enforce.GapFiles, "files are written only where allowed", "Landlock", open, opening(file, unix.O_WRONLY))
	s.add(enforce.GapFiles, "directories are listed only where allowed", "Landlock", open, opening(s.dir+"/empty", unix.O_RDONLY|unix.O_DIRECTORY))
	s.add(enforce.GapFiles, "files are executed only where allowed", "Landlock", open,
		call("execve(2) prog", unix.SYS_EXECVE, text(prog), put([2]uintptr{text(prog)})))
	s.add(enforce.GapTruncate, "files are emptied only where they may be written: truncate(2)", truncateBy, open,
		call("truncate(2) file", unix.SYS_TRUNCATE, text(file), 1))
}

func (s *linuxScene) addNetwork() {
	none := s.plan(policy.ResolvedNet{Mode: policy.NetNone})
	s.add(enforce.GapNetwork, "no network: TCP", "seccomp", none, socket("socket(2) TCP", unix.AF_INET, unix.SOCK_STREAM))
	s.add(enforce.GapNetwork, "no network: UDP", "seccomp", none, socket("socket(2) UDP", unix.AF_INET, unix.SOCK_DGRAM))
	s.add(enforce.GapNetwork, "no network: IPv6", "seccomp", none, socket("socket(2) IPv6", unix.AF_INET6, unix.SOCK_STREAM))
	const promise = "only the TCP ports that are listed"
	ports := s.plan(policy.ResolvedNet{Mode: policy.NetPorts, ConnectTCP: []policy.Port{{Number: uint16(s.allowed)}}})
	tcp, to := socket("socket(2)", unix.AF_INET, unix.SOCK_STREAM), loopback(s.port)
	s.add(enforce.GapTCPPorts, promise, s.caps.SocketsBy(), ports,
		tcp, call("connect(2) to a TCP port", unix.SYS_CONNECT, 0, to, unix.SizeofSockaddrInet4))
	s.add(enforce.GapTCPPorts, promise+": fast open", "seccomp", ports, tcp, fastOpen(to))
	s.add(enforce.GapTCPPorts, promise+": UDP", "seccomp", ports, socket("socket(2) UDP", unix.AF_INET, unix.SOCK_DGRAM))
}

// addSockets connects to sockets outside, and has sockets that a process inherits reach
// elsewhere. Where no supervisor can be had, a command is not started with such sockets.
func (s *linuxScene) addSockets(open *enforce.Plan) error {
	abstract := "@zsbx-check-" + filepath.Base(s.dir)
	if _, err := s.listen("unix", abstract); err != nil {
		return err
	}
	const promise, inherited = "no connection to sockets of programs outside, by ", "no network: an inherited socket, "
	by := s.caps.SocketsBy()
	s.add(enforce.GapUnixSockets, promise+"path", by, open, connectUnix("a path", s.dir+"/socket")...)
	s.add(enforce.GapAbstractSockets, promise+"abstract name", by, open, connectUnix("an abstract name", abstract)...)
	if !s.caps.Seccomp || !s.caps.SeccompNotify {
		return nil
	}
	r := s.policy
	r.Net = policy.ResolvedNet{Mode: policy.NetNone}
	plan := enforce.NewPlanWith(&r, s.caps, nil, enforce.Options{Sockets: true})
	idle, first := call("shutdown(2)", unix.SYS_SHUTDOWN, 0, unix.SHUT_RD), len(s.trials)
	s.add(enforce.GapNetwork, inherited+"listening anew", "zsbx", plan, idle, call("listen(2)", unix.SYS_LISTEN, 0, 1))
	s.add(enforce.GapNetwork, inherited+"fast open", "seccomp", plan, idle, fastOpen(loopback(s.port)))
	for i := range s.trials[first:] {
		s.trials[first+i].listener = true
	}
	return nil
}

// addSignals signals this very process, which takes no notice of it, or would
// have a file that is not open signal a group: of that the kernel says another error than the filter.
func (s *linuxScene) addSignals(open *enforce.Plan) {
	const (
		urgent = uintptr(unix.SIGURG)
		noFile = ^uintptr(0)
	)
	signal := func(means string, steps ...fork.Step) {
		s.add(enforce.GapSignals, "no signals to processes outside: "+steps[len(steps)-1].Name, means, open, steps...)
	}
	by := "Landlock"
	if s.caps.SignalMode() == seccomp.SignalsAll {
		by = "zsbx"
	}
	pid := uintptr(os.Getpid())
	info := put(broker.Siginfo{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff}) // si_code: SI_QUEUE
	signal(by, call("kill(2)", unix.SYS_KILL, pid, urgent))
	signal(by, call("tkill(2)", unix.SYS_TKILL, pid, urgent))
	signal(by, call("tgkill(2)", unix.SYS_TGKILL, pid, pid, urgent))
	signal(by, call("rt_sigqueueinfo(2)", unix.SYS_RT_SIGQUEUEINFO, pid, urgent, info))
	signal(by, call("pidfd_open(2)", unix.SYS_PIDFD_OPEN, pid), call("pidfd_send_signal(2)", unix.SYS_PIDFD_SEND_SIGNAL, 0, urgent))
	signal("seccomp", call("fcntl(2) F_SETOWN to a group", unix.SYS_FCNTL, noFile, unix.F_SETOWN, -pid))
	signal("seccomp", call("fcntl(2) F_SETOWN_EX", unix.SYS_FCNTL, noFile, unix.F_SETOWN_EX))
	signal("seccomp", call("fcntl(2) O_ASYNC", unix.SYS_FCNTL, noFile, unix.F_SETFL, unix.O_ASYNC))
	signal("seccomp", call("fcntl(2) F_SETSIG", unix.SYS_FCNTL, noFile, unix.F_SETSIG, urgent))
	signal("seccomp", call("ioctl(2) FIOSETOWN", unix.SYS_IOCTL, noFile, 0x8901))
	signal("seccomp", call("ioctl(2) SIOCSPGRP", unix.SYS_IOCTL, noFile, 0x8902))
}

// addOther acts on this very process, and changes nothing about it; the others would fail
// in any case, by another error.
func (s *linuxScene) addOther(open *enforce.Plan) {
	var limit unix.Rlimit
	_ = unix.Prlimit(0, unix.RLIMIT_CORE, nil, &limit)
	s.add(enforce.GapPriorities, "no change of limits and priorities of processes outside", "seccomp", open,
		call("prlimit64(2)", unix.SYS_PRLIMIT64, uintptr(os.Getpid()), unix.RLIMIT_CORE, put(limit)))
	s.add(enforce.GapTerminal, "no typing into the caller's terminal", "seccomp", open,
		call("ioctl(2) TIOCSTI", unix.SYS_IOCTL, ^uintptr(0), unix.TIOCSTI))
	for _, c := range []fork.Step{
		call("io_uring_setup(2)", unix.SYS_IO_URING_SETUP),
		call("userfaultfd(2)", unix.SYS_USERFAULTFD, 1 /* UFFD_USER_MODE_ONLY */),
		call("keyctl(2)", unix.SYS_KEYCTL),
		call("unshare(2) CLONE_NEWUSER", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
	} {
		s.add(enforce.GapKernel, "system calls that builds don't need are closed: "+c.Name, "seccomp", open, c)
	}
	if s.caps.Capabilities&(1<<unix.CAP_SYS_ADMIN) != 0 {
		var u unix.Utsname
		_ = unix.Uname(&u)
		name := unix.ByteSliceToString(u.Nodename[:]) // which it has already
		s.add("capabilities", "root without the capabilities that builds don't need", "capset", open,
			call("sethostname(2)", unix.SYS_SETHOSTNAME, text(name), uintptr(len(name))))
	}
}

// addMounts attacks what a mount namespace holds, and a file of zsbx's own in a
// writable tree, which is held with mounts and without. Where there is none, there
// is nothing else to prove: the plan has the gaps.
func (s *linuxScene) addMounts() error {
	host, err := policy.ThisHost()
	if err != nil {
		return err
	}
	own, by := s.dir+"/in/own", "mounts"
	plan := enforce.NewPlanWith(&s.policy, s.caps, &host, enforce.Options{Protect: []string{own}})
	if plan.Mounts == nil {
		by = "Landlock"
	}
	s.add(enforce.GapOwnFiles, "no change of zsbx's own files", by, plan, opening(own, unix.O_WRONLY))
	r := s.policy
	r.Deny = []policy.DenyPath{{Pattern: s.dir + "/in/denied"}}
	if plan = enforce.NewPlanWith(&r, s.caps, &host, enforce.Options{}); plan.Mounts == nil {
		return nil
	}
	if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600); plan.Mounts.IPC && err == nil {
		s.close = append(s.close, func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		s.add(enforce.GapIPC, "no shared memory, semaphores and message queues of programs outside: System V", by, plan,
			call("shmat(2)", unix.SYS_SHMAT, uintptr(id), 0, unix.SHM_RDONLY))
	}
	s.add(enforce.GapDeny, "no access to what is denied inside a writable tree", by, plan, opening(s.dir+"/in/denied", unix.O_RDONLY))
	s.add(enforce.GapProtect, "no change of git's configuration and hooks and the like", by, plan, opening(s.dir+"/in/.git/config", unix.O_WRONLY))
	s.add(enforce.GapMetadata, "no change of mode, owner, times, attributes and flags of files outside", by, plan,
		call("fchmodat(2)", unix.SYS_FCHMODAT, at, text(s.dir+"/file"), 0o600))
	return nil
}
