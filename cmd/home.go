package cmd

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/sandbox"
	"github.com/zsbx/zsbx/policy/shell"
	"github.com/zsbx/zsbx/policy/units"
)

// tellHome says in one line what was written to a private home and is gone, and
// which flags keep it the next time: not those of places that hold secrets, of what
// programs outside start, nor of files that are not there to be named.
func (a *app) tellHome(plan *enforce.Plan, home []sandbox.HomeWrite) {
	if len(home) == 0 {
		return
	}
	slices.SortStableFunc(home, func(x, y sandbox.HomeWrite) int { return cmp.Compare(y.Bytes, x.Bytes) })
	var what, flags []string
	made := false
	for i, h := range home {
		text := units.FormatSize((h.Bytes + 1023) &^ 1023)
		if h.Dir {
			text = count(h.Files, "file", "files") + ", " + text
		}
		what = append(what, fmt.Sprintf("%s (%s)", shell.Quote(h.Path), text))
		_, err := os.Lstat(h.Path)
		if i >= mostNamed || plan.Policy.Secret(h.Path) != "" || plan.Policy.StartedOutside(h.Path) != "" || err != nil && !h.Dir {
			continue
		}
		made = made || err != nil
		flags = append(flags, "--rw "+shell.Quote(strings.ReplaceAll(h.Path, "$", "$$")))
	}
	a.say.warn("written to the private home directory, and gone: %s", few(what))
	if made {
		flags = append(flags, "--create-missing")
	}
	if len(flags) > 0 {
		a.say.hint("%s", strings.Join(flags, " "))
	}
}
