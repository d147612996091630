package cmd

import (
	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
)

// listPresets prints the built-in presets.
func (a *app) listPresets(asJSON bool) error {
	if asJSON {
		return a.printJSON(policy.Presets())
	}
	t := &table{}
	for _, p := range policy.Presets() {
		t.row(p.Name, p.Description)
	}
	return a.printTable(t)
}

// printSBPL prints the Seatbelt profile of a plan.
func (a *app) printSBPL(plan *enforce.Plan) error {
	o := enforce.SeatbeltOptions{}
	if plan.Seatbelt != nil {
		o = *plan.Seatbelt
	}
	text, err := enforce.SeatbeltProfile(plan.Policy, o)
	if err != nil {
		return coded(codePolicy, err)
	}
	return a.printText(text)
}
