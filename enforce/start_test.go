package enforce_test

import (
	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
)

// confine puts a plan on a command, and has its calls answered.
func confine(plan *enforce.Plan, c *fork.Command) error {
	m, err := plan.Confine(c)
	if m != nil {
		go func() { _ = m.Serve() }() // which ends where there is no command
	}
	return err
}

// startUnder starts a command under a plan, or without one.
func startUnder(plan *enforce.Plan, c *fork.Command) (*fork.Process, error) {
	if plan == nil {
		return fork.Start(c)
	}
	if err := confine(plan, c); err != nil {
		return nil, err
	}
	proc, err := fork.Start(c)
	return proc, enforce.ExplainStart(err)
}
