package enforce

import (
	"fmt"
	"strings"
)

// planMacOS fills in the plan for macOS. Seatbelt holds all promises or none.
func (p *Plan) planMacOS() {
	if !p.Caps.Seatbelt {
		p.addGap(Gap{
			Name: GapFiles, Kind: Core,
			Promise: "files are read, written and executed only where allowed",
			Why:     "Seatbelt is needed: " + orUnknown(p.Caps.SeatbeltReason),
		})
		return
	}
	p.Seatbelt = &SeatbeltOptions{}
	text, err := SeatbeltProfile(p.Policy, *p.Seatbelt)
	if err != nil {
		p.Seatbelt = nil
		g := Gap{Name: GapFiles, Kind: Core, Promise: "files are read, written and executed only where allowed", Why: err.Error()}
		if pe, ok := err.(*ProfileError); ok {
			g.Origin = pe.Origin
		}
		p.addGap(g)
		return
	}
	p.Layers = append(p.Layers, Layer{
		Name: "seatbelt",
		Detail: fmt.Sprintf("a profile of %d rules: files, network, services, signals, what other programs could be asked to do",
			strings.Count(text, "\n(")),
	})
}
