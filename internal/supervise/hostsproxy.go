package supervise

import (
	"fmt"
	"os"
)

// This file begins and ends the proxy by which a command reaches hosts outside on macOS. It is the same
// on all systems, so that tests on Linux can use it.

// noProxy returns why nobody would serve a proxy until the session has ended, or "".
func (o *Options) noProxy() string {
	switch {
	case o.InPlace:
		return "a command that replaces zsbx has no proxy"
	case o.Keep:
		return "what --keep leaves running would have no proxy, which ends with zsbx"
	}
	return ""
}

// serveProxy begins the proxy at the first call, and says in the plan where it is. It does nothing
// for a plan without one.
func (c *Command) serveProxy() error {
	if !c.plan.ByProxy() {
		return nil
	}
	if c.proxy == nil {
		front, err := c.plan.Listen(c.outside.event)
		if err != nil {
			return err
		}
		c.proxy = front
		go func() {
			err := front.Serve()
			if err != nil {
				c.warn(Warning{Text: fmt.Sprintf("the command can no longer connect to anything: %v", err)})
			}
		}()
	}
	exe, err := os.Executable()
	if err != nil {
		exe = "" // then ssh(1) finds no way to the proxy
	}
	c.plan.ForProxy(c.proxy.At, exe)
	return nil
}
