package sandbox

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/units"
	"github.com/zsbx/zsbx/track"
)

// groupLimits are the limits that take a control group.
func groupLimits(l policy.Limits) track.Limits {
	return track.Limits{Memory: l.Memory, Pids: l.Pids, CPU: l.CPU}
}

// noLimits says why this machine can't keep them, or "".
func noLimits(l policy.Limits) string {
	if err := track.ProbeLimits(groupLimits(l)); err != nil {
		return "a control group (version 2) is needed: " + err.Error()
	}
	return ""
}

// bounds are the limits of the session, without those that are accepted as gaps.
func (c *prepared) bounds() track.Limits {
	if slices.ContainsFunc(c.plan.Gaps, func(g enforce.Gap) bool { return g.Name == enforce.GapLimits }) {
		return track.Limits{}
	}
	return groupLimits(c.limits)
}

// tellMemory says what may have killed the command.
func (c *Command) tellMemory() {
	killed := c.status.Signaled() && c.status.Signal() == syscall.SIGKILL && c.endedItself()
	if killed && c.limits.Memory > 0 && c.bounds().Memory > 0 {
		c.warn.warn(Warning{Text: fmt.Sprintf("the command was killed, perhaps for the limit of memory, %s (%s)",
			units.FormatSize(c.limits.Memory), c.limits.MemoryFrom)})
	}
}
