package stdio

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// getTermios is the request that reads a terminal's settings.
const getTermios = unix.TCGETS

// Attach makes the new process a session leader with the pseudo-terminal as
// its controlling terminal (ioctl_tty(2), TIOCSCTTY), before any other step.
func (r *Relay) Attach(c *fork.Command) {
	c.Files = []*os.File{r.slave, r.slave, r.slave}
	c.Terminal = true
	c.Steps = append([]fork.Step{
		{Name: "setsid(2)", Nr: unix.SYS_SETSID},
		{Name: "ioctl(TIOCSCTTY)", Nr: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.TIOCSCTTY, 0}},
	}, c.Steps...)
}
