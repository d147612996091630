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
		fd := standardFile(c.Files, i)
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

// standardFile is the descriptor that the command will have as number i.
func standardFile(files []*os.File, i int) int {
	if i < len(files) && files[i] != nil {
		return int(files[i].Fd())
	}
	return i
}
