package attack_test

import (
	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
)

// confine applies a plan to a command, and answers its calls.
func confine(plan *enforce.Plan, c *fork.Command) error {
	m, err := plan.Confine(c)
	if m != nil {
		go func() { _ = m.Serve() }() // returns if no command was started
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
