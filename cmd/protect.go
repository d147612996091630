package cmd

import (
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
)

// plan decides what is enforced for a run.
func (o *policyFlags) plan(a *app, c *composed, r *policy.Resolved, caps enforce.Caps) (*enforce.Plan, error) {
	own := a.ownPaths(c, r, caps.MountNS)
	plan := enforce.NewPlanWith(r, caps, &c.host, enforce.Options{
		NoProtect:      slices.Contains(o.allowGaps, enforce.GapProtect),
		ShareTerminals: slices.Contains(o.allowGaps, enforce.GapTerminals),
		ShareIPC:       slices.Contains(o.allowGaps, enforce.GapIPC),
		LeaveMetadata:  slices.Contains(o.allowGaps, enforce.GapMetadata),
		Protect:        own.held,
		Watch:          own.watched,
		Hide:           own.hidden,
		Repository:     c.root,
		NoOwn:          slices.Contains(o.allowGaps, enforce.GapOwnFiles),
		Sockets:        enforce.InheritsSockets(),
	})
	return plan, plan.Caps.Err
}

// replan plans again after the kernel refused a namespace, and decides whether
// the command may start with the gaps that this leaves.
func (o *runFlags) replan(a *app, c *composed, old *enforce.Plan, caps enforce.Caps) (*enforce.Plan, error) {
	plan, err := o.plan(a, c, old.Policy, caps)
	if err != nil {
		return nil, err
	}
	gaps := slices.DeleteFunc(slices.Clone(plan.Gaps), func(g enforce.Gap) bool { return slices.Contains(old.Gaps, g) })
	return plan, o.acceptGaps(a, gaps)
}

// reportChanges says in one line what of the protected set, or of what is
// denied, is not as it was before the command.
func (a *app) reportChanges(s *enforce.Snapshot) {
	changes := s.Changes()
	if len(changes) == 0 {
		return
	}
	const most = 5
	var names []string
	for _, c := range changes[:min(len(changes), most)] {
		what := "changed"
		if c.New {
			what = "new"
		}
		names = append(names, shell.Quote(c.Path)+" ("+what+")")
	}
	if more := len(changes) - most; more > 0 {
		names = append(names, count(more, "more", "more"))
	}
	a.say.warn("while the command ran, files appeared or changed that are denied to it, or that programs outside act upon: %s", strings.Join(names, ", "))
}
