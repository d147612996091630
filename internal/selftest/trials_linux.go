package selftest

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/egress/rule"
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/broker"
	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// tryAll makes the attacks of the self-test, in the order of the promises.
func (s *linuxScene) tryAll() error {
	var st unix.Stat_t
	in := s.dir + "/in"
	if err := unix.Stat(in, &st); err != nil {
		return err
	}
	access := policy.Read | policy.Write | policy.Exec
	tree := resolve.Path{
		Path:   in,
		Access: access,
		Mode:   os.ModeDir,
		ID:     host.FileID{Dev: st.Dev, Ino: st.Ino},
		Rule:   policy.Rule{Path: in, Access: access, Origin: policy.Origin{Source: "self-test"}},
	}
	s.policy = resolve.Resolved{
		OS:    "linux",
		Dir:   in,
		Net:   resolve.ResolvedNet{Mode: resolve.NetOpen},
		Paths: []resolve.Path{tree},
	}
	open := enforce.NewPlan(&s.policy, s.caps, nil, enforce.Options{})
	s.tryFiles(open)
	s.tryNetwork()
	s.tryHosts()
	if err := s.tryOwnNet(); err != nil {
		return err
	}
	if err := s.trySockets(open); err != nil {
		return err
	}
	s.trySignals(open)
	s.tryOther(open)
	return s.tryMounts()
}

func (s *linuxScene) tryFiles(open *enforce.Plan) {
	file := s.dir + "/file"
	prog := s.dir + "/prog"
	truncateBy := "Landlock"
	if s.caps.Landlock < 3 {
		truncateBy = "seccomp"
	}
	s.try(enforce.GapFiles, "files are read only where allowed", "Landlock", open, opening(file, unix.O_RDONLY))
	s.try(enforce.GapFiles, "files are written only where allowed", "Landlock", open, opening(file, unix.O_WRONLY))
	s.try(enforce.GapFiles, "directories are listed only where allowed", "Landlock", open,
		opening(s.dir+"/empty", unix.O_RDONLY|unix.O_DIRECTORY))
	s.try(enforce.GapFiles, "files are executed only where allowed", "Landlock", open,
		call("execve(2) prog", unix.SYS_EXECVE, text(prog), put([2]uintptr{text(prog)})))
	s.try(enforce.GapTruncate, "files are emptied only where they may be written: truncate(2)", truncateBy, open,
		call("truncate(2) file", unix.SYS_TRUNCATE, text(file), 1))
}

func (s *linuxScene) tryNetwork() {
	closed := *s
	closed.caps.NetReason = "the self-test tries the session's own network by itself"
	none := closed.plan(resolve.ResolvedNet{Mode: resolve.NetNone})
	udp := socket("socket(2) UDP", unix.AF_INET, unix.SOCK_DGRAM)
	s.try(enforce.GapNetwork, "no network: TCP", "seccomp", none,
		socket("socket(2) TCP", unix.AF_INET, unix.SOCK_STREAM))
	s.try(enforce.GapNetwork, "no network: UDP", "seccomp", none, udp)
	s.try(enforce.GapNetwork, "no network: IPv6", "seccomp", none,
		socket("socket(2) IPv6", unix.AF_INET6, unix.SOCK_STREAM))
	const promise = "only the TCP ports that are listed"
	ports := s.plan(resolve.ResolvedNet{Mode: resolve.NetPorts, ConnectTCP: []policy.Port{{Number: uint16(s.allowed)}}})
	tcp := socket("socket(2)", unix.AF_INET, unix.SOCK_STREAM)
	to := s.server()
	fastOpen := call("sendto(2) MSG_FASTOPEN", unix.SYS_SENDTO,
		0, to, 1, unix.MSG_FASTOPEN, to, unix.SizeofSockaddrInet4)
	s.try(enforce.GapTCPPorts, promise, s.caps.SocketsBy(), ports,
		tcp, call("connect(2) to a TCP port", unix.SYS_CONNECT, 0, to, unix.SizeofSockaddrInet4))
	s.try(enforce.GapTCPPorts, promise+": fast open", "seccomp", ports, tcp, fastOpen)
	s.try(enforce.GapTCPPorts, promise+": UDP", "seccomp", ports, udp)
}

// tryHosts connects to a server of this machine that no rule allows, and sends to one by UDP. Another
// port of this machine is allowed.
func (s *linuxScene) tryHosts() {
	allowed := rule.Rule{Form: rule.Local, Port: uint16(s.allowed), Kind: rule.TCP}
	list := resolve.Hosts{
		Rules:   rule.NewSet([]rule.Rule{allowed}, nil),
		Allowed: []resolve.Host{{Rule: allowed}},
	}
	closed := *s
	closed.caps.NetReason = "the self-test tries the session's own network by itself"
	plan := closed.plan(resolve.ResolvedNet{Mode: resolve.NetHosts, Hosts: list})
	if !plan.ReachesHosts() {
		return
	}
	to := s.server()
	s.try(enforce.GapHosts, "only the hosts that are listed", "zsbx", plan,
		socket("socket(2)", unix.AF_INET, unix.SOCK_STREAM),
		call("connect(2) to another port", unix.SYS_CONNECT, 0, to, unix.SizeofSockaddrInet4))
}

// server returns the address of the scene's server.
func (s *linuxScene) server() uintptr {
	return put(unix.RawSockaddrInet4{
		Family: unix.AF_INET,
		Addr:   [4]byte{127, 0, 0, 1},
		Port:   uint16(s.port>>8 | s.port<<8),
	})
}

func (s *linuxScene) trySockets(open *enforce.Plan) error {
	abstract := "@zsbx-check-" + filepath.Base(s.dir)
	if _, err := s.listen("unix", abstract); err != nil {
		return err
	}
	const promise = "no connection to sockets of programs outside, by "
	by := s.caps.SocketsBy()
	s.try(enforce.GapUnixSockets, promise+"path", by, open, connectUnix("a path", s.dir+"/socket")...)
	link := s.dir + "/in/link"
	other := s.dir + "/in/other"
	if err := errors.Join(os.Symlink("../socket", link), os.Link(s.dir+"/socket", other)); err != nil {
		return err
	}
	s.try(enforce.GapUnixSockets, promise+"path: through a link", by, open, connectUnix("a link", link)...)
	s.try(enforce.GapUnixSockets, promise+"path: by another name", by, open, connectUnix("a hard link", other)...)
	if open.Broker.ChecksSockets() { // else Landlock checks the addresses of datagrams
		s.try(enforce.GapUnixSockets, promise+"path: datagrams", "seccomp", open,
			socket("socket(2) Unix datagrams", unix.AF_UNIX, unix.SOCK_DGRAM))
	}
	s.try(enforce.GapAbstractSockets, promise+"abstract name", by, open, connectUnix("an abstract name", abstract)...)
	return nil
}

// trySignals sends this process a signal that it ignores. It also makes calls on a descriptor
// that is not open, for which the kernel's error differs from the filter's.
func (s *linuxScene) trySignals(open *enforce.Plan) {
	const (
		urgent = uintptr(unix.SIGURG)
		noFile = ^uintptr(0)
	)
	signal := func(means string, steps ...fork.Step) {
		s.try(enforce.GapSignals, "no signals to processes outside: "+steps[len(steps)-1].Name, means, open, steps...)
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
	signal(by, call("pidfd_open(2)", unix.SYS_PIDFD_OPEN, pid),
		call("pidfd_send_signal(2)", unix.SYS_PIDFD_SEND_SIGNAL, 0, urgent))
	signal("seccomp", call("fcntl(2) F_SETOWN to a group", unix.SYS_FCNTL, noFile, unix.F_SETOWN, -pid))
	signal("seccomp", call("fcntl(2) F_SETOWN_EX", unix.SYS_FCNTL, noFile, unix.F_SETOWN_EX))
	signal("seccomp", call("fcntl(2) O_ASYNC", unix.SYS_FCNTL, noFile, unix.F_SETFL, unix.O_ASYNC))
	signal("seccomp", call("fcntl(2) F_SETSIG", unix.SYS_FCNTL, noFile, unix.F_SETSIG, urgent))
	signal("seccomp", call("ioctl(2) FIOSETOWN", unix.SYS_IOCTL, noFile, 0x8901))
	signal("seccomp", call("ioctl(2) SIOCSPGRP", unix.SYS_IOCTL, noFile, 0x8902))
}

// tryOther makes calls that change nothing about this process, and calls that fail anyway, with
// another error than the filter's.
func (s *linuxScene) tryOther(open *enforce.Plan) {
	var limit unix.Rlimit
	_ = unix.Prlimit(0, unix.RLIMIT_CORE, nil, &limit)
	s.try(enforce.GapPriorities, "no change of limits and priorities of processes outside", "seccomp", open,
		call("prlimit64(2)", unix.SYS_PRLIMIT64, uintptr(os.Getpid()), unix.RLIMIT_CORE, put(limit)))
	s.try(enforce.GapTerminal, "no typing into the caller's terminal", "seccomp", open,
		call("ioctl(2) TIOCSTI", unix.SYS_IOCTL, ^uintptr(0), unix.TIOCSTI))
	for _, c := range []fork.Step{
		call("io_uring_setup(2)", unix.SYS_IO_URING_SETUP),
		call("userfaultfd(2)", unix.SYS_USERFAULTFD, 1 /* UFFD_USER_MODE_ONLY */),
		call("keyctl(2)", unix.SYS_KEYCTL),
		call("unshare(2) CLONE_NEWUSER", unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
	} {
		s.try(enforce.GapKernel, "system calls that builds don't need are closed: "+c.Name, "seccomp", open, c)
	}
	if s.caps.Capabilities&(1<<unix.CAP_SYS_ADMIN) != 0 {
		var u unix.Utsname
		_ = unix.Uname(&u)
		name := unix.ByteSliceToString(u.Nodename[:]) // the name that it has already
		s.try("capabilities", "root without the capabilities that builds don't need", "capset", open,
			call("sethostname(2)", unix.SYS_SETHOSTNAME, text(name), uintptr(len(name))))
	}
}

// tryMounts attacks what a mount namespace enforces, and one of zsbx's files in a writable tree,
// which is protected without mounts, too. Without a namespace nothing else is to be proved, since
// the plan has the gaps.
func (s *linuxScene) tryMounts() error {
	h, err := host.ThisHost()
	if err != nil {
		return err
	}
	own := s.dir + "/in/own"
	by := "mounts"
	plan := enforce.NewPlan(&s.policy, s.caps, &h, enforce.Options{Protect: []string{own}})
	if plan.Mounts == nil {
		by = "Landlock"
	}
	s.try(enforce.GapZsbxFiles, "no change of zsbx's own files", by, plan, opening(own, unix.O_WRONLY))
	r := s.policy
	r.Deny = []resolve.DenyPath{{Pattern: s.dir + "/in/denied"}}
	plan = enforce.NewPlan(&r, s.caps, &h, enforce.Options{})
	if plan.Mounts == nil {
		return nil
	}
	if id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600); plan.Mounts.IPC && err == nil {
		s.close = append(s.close, func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		s.try(enforce.GapIPC, "no shared memory, semaphores and message queues of programs outside: System V", by, plan,
			call("shmat(2)", unix.SYS_SHMAT, uintptr(id), 0, unix.SHM_RDONLY))
	}
	s.try(enforce.GapDeny, "no access to what is denied inside a writable tree", by, plan,
		opening(s.dir+"/in/denied", unix.O_RDONLY))
	s.try(enforce.GapProtect, "no change of git's configuration and hooks and the like", by, plan,
		opening(s.dir+"/in/.git/config", unix.O_WRONLY))
	s.try(enforce.GapMetadata, "files outside keep their mode, owner, times, attributes and flags", by, plan,
		call("fchmodat(2)", unix.SYS_FCHMODAT, at, text(s.dir+"/file"), 0o600))
	if err := s.tryFar(&h); err != nil {
		return err
	}
	return s.tryShut(&h)
}

// in returns the plan for a writable directory.
func (s *linuxScene) in(dir string, h *host.Host) *enforce.Plan {
	r := s.policy
	tree := s.policy.Paths[0]
	there := h.Look(dir)
	tree.Path = dir
	tree.Rule.Path = dir
	tree.ID = there.Stat.ID
	r.Paths = []resolve.Path{tree}
	return enforce.NewPlan(&r, s.caps, h, enforce.Options{})
}

// tryFar writes to the configuration of a repository to which a .git leads that is a link.
func (s *linuxScene) tryFar(h *host.Host) error {
	if err := os.Symlink("../git", s.dir+"/far/tree/.git"); err != nil {
		return err
	}
	s.try(enforce.GapProtect, "no change of git's configuration where a .git leads elsewhere", "mounts",
		s.in(s.dir+"/far", h), opening(s.dir+"/far/git/config", unix.O_WRONLY))
	return nil
}

// tryShut sets the mode that they have already on directories that may have protected files but
// can't be listed. Root can list every directory.
func (s *linuxScene) tryShut(h *host.Host) error {
	const mode = 0o311
	hg := s.dir + "/shut/.hg"
	hooks := s.dir + "/shut/.git/hooks"
	if err := errors.Join(os.Chmod(hg, mode), os.Chmod(hooks, mode)); err != nil {
		return err
	}
	// What the trial without restrictions makes in it has to be found, and removed.
	defer func() { _ = os.Chmod(hooks, 0o700) }()
	if host.List(h, hg).Unread == nil {
		return nil
	}
	plan := s.in(s.dir+"/shut", h)
	plan.Gaps = nil // they are about links in it, which are not known
	s.try(enforce.GapProtect, "no change of a directory that can't be looked into", "mounts", plan,
		call("fchmodat(2)", unix.SYS_FCHMODAT, at, text(hg), mode))
	s.try(enforce.GapProtect, "no change of git's hooks that can't be listed", "mounts", plan,
		call("fchmodat(2) hooks", unix.SYS_FCHMODAT, at, text(hooks), mode))
	s.try(enforce.GapProtect, "no new hook among those that can't be listed", "mounts", plan,
		call("openat(2) O_CREAT", unix.SYS_OPENAT, at, text(hooks+"/new"), unix.O_WRONLY|unix.O_CREAT, 0o600))
	return nil
}
