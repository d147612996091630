package sandbox

import (
	"fmt"

	"github.com/zsbx/zsbx/enforce/fork"
)

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
		c.served = make(chan struct{})
		go func() {
			defer close(c.served)
			if err := c.broker.Serve(); err != nil {
				c.warn.warn(Warning{Text: fmt.Sprintf("the command can't connect to anything any more: %v", err)})
			}
		}()
	default:
		c.broker.Close()
		c.broker = nil
	}
}

// Served waits until no process of the command is left that could need an answer of
// this one: see Options.Keep.
func (c *Command) Served() {
	if c.served != nil {
		<-c.served
	}
}
