package sandbox

import (
	"fmt"
	"syscall"

	"github.com/zsbx/zsbx/policy/units"
	"github.com/zsbx/zsbx/track"
)

// bound notes the limits that take a control group, and says why this machine can't
// keep them, or "". Where that is accepted there are none.
func (c *prepared) bound() string {
	c.bounds = track.Limits{Memory: c.limits.Memory, Pids: c.limits.Pids, CPU: c.limits.CPU}
	if err := track.ProbeLimits(c.bounds); err != nil {
		c.bounds = track.Limits{}
		return "a control group (version 2) is needed: " + err.Error()
	}
	return ""
}

// tellMemory says what may have killed the command.
func (c *Command) tellMemory() {
	killed := c.status.Signaled() && c.status.Signal() == syscall.SIGKILL && c.endedItself()
	if killed && c.bounds.Memory > 0 {
		c.warn(Warning{Text: fmt.Sprintf("the command was killed, perhaps for the limit of memory, %s (%s)",
			units.FormatSize(c.bounds.Memory), c.limits.MemoryFrom)})
	}
}
