package supervise

import (
	"errors"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
)

// TestAcceptGaps is the table of what is accepted by name, asked about and refused.
func TestAcceptGaps(t *testing.T) {
	core := enforce.Gap{Name: "tcp-ports", Kind: enforce.Core, Promise: "only these ports", Why: "too old"}
	hard := enforce.Gap{Name: "signals", Kind: enforce.Hardening, Promise: "no signals", Why: "too old"}
	yes := func([]enforce.Gap) bool { return true }
	for _, c := range []struct {
		name    string
		o       Options
		gaps    []enforce.Gap
		refused int
		warned  int
	}{
		{"none", Options{}, nil, 0, 0},
		{"core", Options{}, []enforce.Gap{core}, 1, 0},
		{"both", Options{}, []enforce.Gap{core, hard}, 1, 1},
		{"hardening", Options{}, []enforce.Gap{hard, hard}, 0, 1},
		{"strict", Options{Strict: true}, []enforce.Gap{hard}, 1, 0},
		{"asked", Options{Accept: yes}, []enforce.Gap{core}, 0, 0},
		{"asked strict", Options{Accept: yes, Strict: true}, []enforce.Gap{core, hard}, 0, 0},
		{"allowed", Options{AllowGaps: []string{"tcp-ports"}}, []enforce.Gap{core}, 0, 0},
		{"other allowed", Options{AllowGaps: []string{"signals"}}, []enforce.Gap{core, hard}, 1, 0},
		{"strict allowed", Options{Strict: true, AllowGaps: []string{"signals"}}, []enforce.Gap{hard}, 0, 0},
	} {
		warned := 0
		err := c.o.acceptGaps(func(Warning) { warned++ }, nil, c.gaps)
		refused := 0
		var ge *enforce.GapError
		if errors.As(err, &ge) {
			refused = len(ge.Gaps)
		}
		if refused != c.refused || warned != c.warned {
			t.Errorf("%s: %d refused, %d warned, want %d and %d: %v", c.name, refused, warned, c.refused, c.warned, err)
		}
	}
}
