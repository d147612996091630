package sandbox

import (
	"fmt"
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
	want := groupLimits(l)
	if want == (track.Limits{}) {
		return ""
	}
	if err := track.ProbeLimits(want); err != nil {
		return "a control group (version 2) is needed: " + err.Error()
	}
	return ""
}

// bounds are the limits of the session, without those that are accepted as gaps.
func (c *prepared) bounds() track.Limits {
	for _, g := range c.plan.Gaps {
		if g.Name == enforce.GapLimits {
			return track.Limits{}
		}
	}
	return groupLimits(c.limits)
}

// tellReached says which limits the session ran into.
func (c *Command) tellReached(n track.Reached) {
	if n.Gone && c.limits.Memory > 0 && c.status.Signaled() && c.status.Signal() == syscall.SIGKILL && c.endedItself() {
		c.warn.warn(Warning{Text: fmt.Sprintf("the command was killed, perhaps for the limit of memory, %s (%s): its control group was gone before it could be asked",
			units.FormatSize(c.limits.Memory), c.limits.MemoryFrom)})
	}
	if n.OOMKills > 0 {
		c.warn.warn(Warning{Text: fmt.Sprintf("the session had all of its memory, %s (%s): the kernel ended %d of its processes",
			units.FormatSize(c.limits.Memory), c.limits.MemoryFrom, n.OOMKills)})
	}
	if n.Forks > 0 {
		c.warn.warn(Warning{Text: fmt.Sprintf("the session had all of its %d processes and threads (%s): %d more could not be made",
			c.limits.Pids, c.limits.PidsFrom, n.Forks)})
	}
}
