package enforce

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// refuseSockets refuses to pass the command a socket as standard input or output if it could
// reach what the plan closes. The filter decides when sockets are made and connected. An
// inherited datagram socket can send to any address without either.
func (p *Plan) refuseSockets(c *fork.Command) error {
	for i := range 3 {
		fd := fork.StandardFile(c.Files, i)
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if fork.ShortageOf(err) != nil {
			return fmt.Errorf("looking at descriptor %d: %w", i, err)
		}
		if err != nil {
			continue // no socket, or a closed descriptor
		}
		if what := p.reaches(fd, domain); what != "" {
			return fmt.Errorf("descriptor %d is %s", i, what)
		}
	}
	return nil
}

// reaches says what an inherited socket is and what it could reach that the plan closes, or "".
func (p *Plan) reaches(fd, domain int) string {
	checked := p.Broker.ChecksSockets()
	if domain == unix.AF_UNIX {
		kind, _ := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		if checked && kind != unix.SOCK_STREAM && kind != unix.SOCK_SEQPACKET {
			return "a Unix datagram socket, which could send to programs outside"
		}
		return ""
	}
	net := &p.Policy.Net
	switch {
	case net.Mode == resolve.NetOpen:
		return ""
	case !hasFixedPeers(fd, domain, checked):
		return "a socket that could send anywhere, and the network is closed to the command"
	case net.OwnOnly() && p.Seccomp != nil:
		return "a TCP socket, which the command could connect again or make listen, " +
			"and the network is closed to it; use a pipe instead"
	}
	return ""
}

// refuseCovered refuses to pass the command a directory, which would bypass all mounts, or a
// file that a mount covers. A descriptor of such a file would bypass the mount: the command could
// reopen the file by /proc/self/fd with more access than the caller did.
func refuseCovered(mp *mounts.Plan, files []*os.File) error {
	for i := range 3 {
		fd := fork.StandardFile(files, i)
		var st unix.Stat_t
		err := unix.Fstat(fd, &st)
		if err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			const what = "a directory, through which the command could bypass what is denied and protected"
			return fmt.Errorf("descriptor %d is %s", i, what)
		}
		flags := 0
		if err == nil {
			flags, err = unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		}
		if fork.ShortageOf(err) != nil {
			return fmt.Errorf("looking at descriptor %d: %w", i, err)
		}
		if err != nil {
			continue // closed
		}
		path := fork.PathOf(fd)
		if why := reopensCovered(mp, path, flags); why != "" {
			return fmt.Errorf("descriptor %d is %s, which is %s; use a pipe instead", i, path, why)
		}
	}
	return nil
}

// reopensCovered says how a mount covers a file that the command could reopen with more access
// than the flags of its descriptor give, or "".
func reopensCovered(mp *mounts.Plan, path string, flags int) string {
	mode := flags & unix.O_ACCMODE
	reference := flags&unix.O_PATH != 0
	writes := mode == unix.O_WRONLY || mode == unix.O_RDWR
	for _, m := range mp.Mounts {
		if !host.Within(path, m.Path) {
			continue
		}
		switch {
		case m.Kind == mounts.Mask && (reference || mode != unix.O_RDWR):
			return "denied: the command could reopen it with more access"
		case m.Kind == mounts.Protect && (reference || !writes):
			return "protected: the command could reopen it and write to it"
		}
	}
	return ""
}

// nullSteps returns the steps that open /dev/null again, below the mounts, where it is one of the
// command's descriptors 0 to 2. Through the caller's descriptor root could change its mode and
// owner, and take it from all other programs.
func nullSteps(c *fork.Command) (steps []fork.Step) {
	for i := range 3 {
		fd := fork.StandardFile(c.Files, i)
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(1, 3) {
			continue
		}
		flags, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		name := uintptr(unsafe.Pointer(c.Memory().Text(os.DevNull)))
		opens := fork.Step{
			Name: "opening " + os.DevNull, Nr: unix.SYS_OPENAT, MayFail: true,
			Args: [6]uintptr{^uintptr(99), name, uintptr(flags&unix.O_ACCMODE | unix.O_CLOEXEC)}, // AT_FDCWD
		}
		replaces := fork.Step{
			Name: "dup3(2)", Nr: unix.SYS_DUP3, MayFail: true,
			Args: [6]uintptr{1: uintptr(i)}, Back: [6]uint32{1},
		}
		steps = append(steps, opens, replaces)
	}
	return steps
}

// reopen adds rules that let the command reopen its descriptors 0 to 2, through /dev/stderr and
// so on, with the access that they have, if they are files, FIFOs or pseudo-terminals. It
// returns the rules. They give no more than the command has anyway: fcntl(2) clears O_APPEND,
// and ftruncate(2) works. Denied files stay closed.
func (p *Plan) reopen(files []*os.File, ruleset int) (rules []landlock.PathRule) {
	for i := range 3 {
		fd := fork.StandardFile(files, i)
		rights := reopens(fd)
		if rights == 0 {
			continue
		}
		r := landlock.PathRule{Path: fork.PathOf(fd), Rights: rights & p.Landlock.HandledFS}
		rule := landlock.PathBeneath{Rights: r.Rights, Fd: uintptr(fd)}
		if slices.ContainsFunc(p.Policy.Deny, func(d resolve.DenyPath) bool { return d.Covers(r.Path) }) {
			r.Rights = 0
		} else if landlock.AddRule(ruleset, landlock.RulePathBeneath, unsafe.Pointer(&rule)) != nil {
			continue // the descriptor itself works; pipes can't have rules and need none
		}
		rules = append(rules, r)
	}
	return rules
}

// reopens returns the rights for reopening a descriptor with its present access. It returns 0
// for a directory or an O_PATH descriptor, which lead further, and for other devices, which may
// belong to somebody else when opened again: after a logout a console is the next user's
// (vhangup(2)).
func reopens(fd int) (rights uint64) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return 0 // closed
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFIFO:
	case unix.S_IFCHR:
		if !mounts.IsPseudoTerminal(&st) {
			return 0
		}
		rights = landlock.FSIoctlDev
	default:
		return 0
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	switch mode := flags & unix.O_ACCMODE; {
	case err != nil, flags&unix.O_PATH != 0, mode == unix.O_ACCMODE:
		return 0
	case mode == unix.O_RDONLY:
		return rights | landlock.FSReadFile
	case mode == unix.O_WRONLY:
		return rights | landlock.FSWriteFile | landlock.FSTruncate
	}
	return rights | landlock.FSReadFile | landlock.FSWriteFile | landlock.FSTruncate
}

// hasFixedPeers reports whether a socket has a peer that can't change, or listens for peers. The
// caller passes such a socket on purpose, as inetd(8) and sshd(8) do. Servers in Go listen on
// MPTCP, which Landlock does not check. Other protocols don't count, since a peer may change:
// SCTP gets peers by setsockopt(2).
func hasFixedPeers(fd, domain int, checked bool) bool {
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	known := protocol == unix.IPPROTO_TCP || protocol == unix.IPPROTO_MPTCP && checked
	if err != nil || !known || domain != unix.AF_INET && domain != unix.AF_INET6 {
		return false
	}
	if _, err := unix.Getpeername(fd); err == nil {
		return true
	}
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil && listens != 0
}
