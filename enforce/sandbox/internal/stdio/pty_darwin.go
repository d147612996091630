package stdio

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// getTermios is the request that reads a terminal's settings.
const getTermios = unix.TIOCGETA

// Attach makes the new process a session leader with the pseudo-terminal as
// its controlling terminal.
func (r *Relay) Attach(c *fork.Command) {
	c.Files = []*os.File{r.slave, r.slave, r.slave}
	c.Terminal = true
}
