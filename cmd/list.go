package cmd

import (
	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/policy"
)

// jsonPreset describes a preset in the output of profile --list --json.
type jsonPreset struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Commands    []string `json:"commands"`
	Files       []string `json:"files"`
}

// listPresets prints the built-in presets.
func (a *app) listPresets(asJSON bool) error {
	if asJSON {
		list := []jsonPreset{}
		for _, p := range policy.Presets() {
			list = append(list, jsonPreset{p.Name, p.Description, append([]string{}, p.Commands...), append([]string{}, p.Files...)})
		}
		return a.printJSON(list)
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
