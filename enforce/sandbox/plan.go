package sandbox

import (
	"fmt"
	"slices"

	"github.com/zsbx/zsbx/enforce"
)

// replan decides what is enforced on a machine that can do as much as caps say.
func (c *prepared) replan(caps enforce.Caps) error {
	accepted := func(gap string) bool { return slices.Contains(c.o.AllowGaps, gap) }
	self := c.selfFiles(caps.MountNS)
	c.plan = enforce.NewPlanWith(c.resolved, caps, &c.host, enforce.Options{
		NoProtect:      accepted(enforce.GapProtect),
		ShareTerminals: accepted(enforce.GapTerminals),
		ShareIPC:       accepted(enforce.GapIPC),
		LeaveMetadata:  accepted(enforce.GapMetadata),
		Protect:        self.readOnly,
		Watch:          self.watched,
		Hide:           self.hidden,
		Repository:     c.o.Repository,
		NoOwn:          accepted(enforce.GapOwnFiles),
		NoLimits:       noLimits(c.limits),
		Explain:        c.o.Explain,
		Model:          c.o.Model,
		Sockets:        enforce.InheritsSockets(c.o.standardFiles()),
	})
	c.resolved.NameJavaTemp(c.plan.Mounts.PrivateIn("/tmp") == "")
	if c.plan.Seatbelt != nil {
		c.plan.Seatbelt.External = c.o.SandboxExec
	}
	if why := c.plan.Explains(); c.o.Explain && why != "" && c.plan.Caps.Err == nil {
		return &Error{Code: CodeFailed, Err: fmt.Errorf("what the command is refused can't be seen here: %s", why)}
	}
	return c.plan.Caps.Err
}

// without plans again after the kernel refused a part, and decides whether the
// command may start with the gaps that this leaves.
func (c *prepared) without(caps enforce.Caps) error {
	before := c.plan.Gaps
	if err := c.replan(caps); err != nil {
		return err
	}
	more := slices.DeleteFunc(slices.Clone(c.plan.Gaps), func(g enforce.Gap) bool { return slices.Contains(before, g) })
	return c.o.acceptGaps(c.warn, more)
}
