package cmd

import (
	"errors"
	"slices"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/selftest"
	"github.com/zsbx/zsbx/track"
)

// machineReport is what check says about this machine.
type machineReport struct {
	OS       string           `json:"os"`
	Arch     string           `json:"arch"`
	Policies []string         `json:"policies"` // files in use
	Proofs   []selftest.Proof `json:"proofs"`
	Layers   []enforce.Layer  `json:"layers"`
	Gaps     []enforce.Gap    `json:"gaps"`
	Tracker  jsonTracker      `json:"tracker"`
}

// jsonTracker is what would track a command here.
type jsonTracker struct {
	Name      track.Kind `json:"name"`
	Guarantee string     `json:"guarantee"`
	Why       string     `json:"why,omitempty"` // nothing stronger does
}

// machine says what this machine enforces of the policy, each promise tried in
// throw-away processes. The status is 1 when a promise of the policy can't be
// kept, and also when one that should be held by what the kernel says of
// itself was not.
func (o *checkFlags) machine(a *app, plan *enforce.Plan, files []string) error {
	proofs, err := selftest.Run(plan.Caps)
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	m := &machineReport{
		OS: plan.Caps.OS, Arch: plan.Caps.Arch, Policies: files, Proofs: proofs,
		Layers: plan.Layers, Gaps: plan.Gaps, Tracker: bestTracker(plan),
	}
	if o.json {
		err = a.printJSON(m)
	} else {
		err = a.printText(m.text(plan, o.selfTest))
	}
	if err != nil {
		return err
	}
	return o.verdict(a, plan, proofs)
}

// verdict is the status of check without questions.
func (o *checkFlags) verdict(a *app, plan *enforce.Plan, proofs []selftest.Proof) error {
	bad := false
	for _, p := range proofs {
		known := slices.ContainsFunc(plan.Gaps, func(g enforce.Gap) bool { return g.Name == p.Name })
		if !p.Held && !known {
			bad = true
			if !o.json {
				a.say.warn("the kernel claims to enforce this, but did not: %s: %s", p.Promise, p.Detail)
			}
		}
	}
	open := plan.Err(o.allowGaps)
	if o.strict {
		open = plan.StrictErr(o.allowGaps)
	}
	if bad || open != nil {
		return status(exitNo)
	}
	return nil
}

// bestTracker is what would track a command under the plan.
func bestTracker(plan *enforce.Plan) jsonTracker {
	scoped := plan.Landlock != nil && plan.Landlock.Scoped != 0
	c, err := track.Best(scoped)
	if err != nil {
		return jsonTracker{Why: err.Error()}
	}
	return jsonTracker{Name: c.Kind, Guarantee: c.Kind.Guarantee(true), Why: c.Why()}
}

// text is the report for people; detail adds what was tried.
func (m *machineReport) text(plan *enforce.Plan, detail bool) string {
	t := &table{}
	t.section("promises, each tried with and without the restrictions")
	for _, p := range m.Proofs {
		row := []string{"NOT HELD", p.Name, p.Promise, p.Means}
		if p.Held {
			row[0] = "held"
		}
		if detail {
			row = append(row, p.Detail)
		}
		t.row(row...)
	}
	t.section("tracked by")
	t.row(string(m.Tracker.Name), m.Tracker.Guarantee)
	if m.Tracker.Why != "" {
		t.row("", m.Tracker.Why)
	}
	t.enforced(plan)
	t.section("policies")
	for _, f := range m.Policies {
		t.row(f, "no mistakes")
	}
	return t.String()
}
