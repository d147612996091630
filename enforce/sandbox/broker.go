package sandbox

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/zsbx/zsbx/enforce/fork"
)

// serveSocketsArg makes a program the process that answers the socket calls of a
// kept session. It is no command: the program starts itself with it; see Init.
const serveSocketsArg = "--serve-sockets-of-a-kept-session"

// confine puts the plan on cmd, and keeps the broker of its sockets, which
// serves once the command runs: before, the command makes no call, and the start
// is not to wait for the threads that serving takes.
func (c *Command) confine(cmd *fork.Command) (err error) {
	c.broker, err = c.plan.ConfineMediated(cmd)
	return err
}

// serve starts to answer, or gives up where the command was not started.
func (c *Command) serve(started bool) {
	switch {
	case c.broker == nil:
	case started:
		go func() {
			if err := c.broker.Serve(); err != nil {
				c.warn.warn(Warning{Text: fmt.Sprintf("the command can't connect to anything any more: %v", err)})
			}
		}()
	default:
		c.broker.Close()
		c.broker = nil
	}
}

// handOver lets another process answer the socket calls of what the command
// left running.
func (c *Command) handOver() {
	if c.broker == nil {
		return
	}
	err := c.broker.HandOver(&exec.Cmd{Path: "/proc/self/exe", Args: []string{os.Args[0], serveSocketsArg}, Env: []string{}})
	if err != nil {
		c.warn.warn(Warning{Text: fmt.Sprintf("what the command left running can't connect to anything any more: %v", err)})
	}
}
