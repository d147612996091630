package cmd

import (
	"strings"

	"github.com/zsbx/zsbx/enforce"
)

// machine says what this machine enforces of the policy.
func (o *checkFlags) machine(a *app, plan *enforce.Plan, files []string) error {
	if o.json {
		if err := a.printJSON(planJSON(plan)); err != nil {
			return err
		}
	} else {
		var b strings.Builder
		b.WriteString("enforced by\n")
		layerTable(plan).write(&b)
		if len(plan.Gaps) > 0 {
			b.WriteString("\nnot held on this machine\n")
			gapTable(plan).write(&b)
		}
		if err := a.printText(b.String()); err != nil {
			return err
		}
	}
	open := plan.Err(o.allowGaps)
	if o.strict {
		open = plan.StrictErr(o.allowGaps)
	}
	if open != nil {
		return status(exitNo)
	}
	return nil
}
