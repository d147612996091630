package enforce

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/policy"
)

// refuseSockets refuses to pass the command a socket as standard input or
// output by which it would reach what the plan closes. The filter decides when
// sockets are made and connected; a datagram socket that is there already
// sends to any address without either.
func (p *Plan) refuseSockets(c *fork.Command) error {
	for i := range 3 {
		fd := fork.StandardFile(c.Files, i)
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err != nil {
			continue // no socket, or closed
		}
		kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		if err != nil {
			return fmt.Errorf("the kind of socket at descriptor %d: %w", i, err)
		}
		switch {
		case domain == unix.AF_UNIX:
			if kind == unix.SOCK_DGRAM && p.Mediation != nil {
				return fmt.Errorf("descriptor %d is a Unix datagram socket, which could send to programs outside", i)
			}
		case p.Policy.Net.Mode != policy.NetOpen && !settled(fd, kind):
			return fmt.Errorf("descriptor %d is a socket that could send anywhere, and the network is closed to the command", i)
		}
	}
	return nil
}

// refuseCovered refuses to pass the command a file that a mount keeps from it:
// the descriptor leads to it beside that mount, and by /proc/self/fd it can be
// opened anew, for more than the caller opened it for.
func (mp *MountPlan) refuseCovered(files []*os.File) error {
	for i := range 3 {
		fd := fork.StandardFile(files, i)
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			continue // closed
		}
		mode, reference := flags&unix.O_ACCMODE, flags&unix.O_PATH != 0
		path := pathOf(fd)
		for _, m := range mp.Mounts {
			if !within(path, m.Path) {
				continue
			}
			writes := mode == unix.O_WRONLY || mode == unix.O_RDWR
			switch {
			case m.Kind == Mask && (reference || mode != unix.O_RDWR):
				return fmt.Errorf("descriptor %d is %s, which is denied: the command could open it anew for more; a pipe can take its place", i, path)
			case m.Kind == Protect && (reference || !writes):
				return fmt.Errorf("descriptor %d is %s, which is protected: the command could open it anew and write to it; a pipe can take its place", i, path)
			}
		}
	}
	return nil
}

// settled says whether a socket has one peer and keeps it, or waits for peers.
// Such a socket the caller passes knowingly, as inetd(8) and sshd(8) do.
func settled(fd, kind int) bool {
	if kind != unix.SOCK_STREAM {
		return false
	}
	if _, err := unix.Getpeername(fd); err == nil {
		return true
	}
	listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return err == nil && listens != 0
}
