package layer

import (
	"slices"
	"testing"
)

// TestExchanged: a directory of the tree that is exchanged while the command runs has other files than the command
// saw, however old they are. A directory of which only what is in it changed has not, unless the one above it changed,
// too.
func TestExchanged(t *testing.T) {
	const before = "mkdir -p d/e ../new; echo a >d/f; cp d/f d/e; echo other >../new/f; echo b >d/g; echo b >../new/g"
	const script = "echo c >>d/f; rm d/g; echo c >d/h"
	late := []string{"~ d/f !" + conflictLate, "- d/g !" + conflictLate, "+ d/h"}
	none := []string{"~ d/f", "- d/g", "+ d/h"}
	for _, c := range []struct {
		name    string // without a comma: it is in the options of a mount
		script  string
		outside string
		want    []string
	}{
		{"nothing", script, "", none},
		{"something is put into it", script, "echo d >d/x", none},
		{"something in it is removed", "echo c >>d/f; echo c >d/h", "rm d/g", []string{"~ d/f", "+ d/h"}},
		{"exchanged", script, "mv d ../old; mv ../new d", late},
		{"exchanged and then something is put into it", script, "mv d ../old; mv ../new d; echo d >d/x", late},
		{"exchanged and then something in it is removed", "echo c >>d/f", "mv d ../old; mv ../new d; rm d/g", late[:1]},
		{"exchanged in a directory that was", "echo c >>d/e/f", "mv d/e ../old; mv ../new d/e; echo d >d/e/x",
			[]string{"~ d/e/f !" + conflictLate}},
		{"something is put beside it", script, "echo d >x", none},
		{"something is put into it and beside it which is not told from that", script, "echo d >d/x; echo d >x", late},
		{"copied anew", script, "mv d ../old; cp -a ../old d", late},
		{"its mode", "chmod 700 d", "chmod 777 d", []string{"~ d !" + conflictLate}},
		{"its mode without a change outside", "chmod 700 d", "echo d >d/x", []string{"~ d"}},
		{"the mode of the tree", "chmod 700 .", "chmod 777 .", []string{"~ . !" + conflictLate}},
		{"the mode of the tree without a change outside", "chmod 700 .", "echo d >x", []string{"~ ."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTried(t, before)
			x.insideOnly(c.script)
			x.outside(c.outside)
			for _, state := range []string{"before Freeze", "after Freeze"} {
				if got := texts(x.changes()); !slices.Equal(got, c.want) {
					t.Errorf("%s: %q, not %q", state, got, c.want)
				}
				x.freeze()
			}
		})
	}
}

// TestForgedTop: a mark that a command makes on the tree itself is told, as on everything in it.
func TestForgedTop(t *testing.T) {
	x := newTried(t, "echo a >f")
	x.insideOnly(python(t, `
try:
    os.setxattr('.', 'user.overlay.opaque', b'y')
except OSError:
    os.setxattr('.', 'user.zsbx', b'y') # Linux before 6.7
`))
	want := "~ . ?it has the attribute user.overlay.overlay.opaque, which belongs to overlays"
	got := texts(x.changes())
	if !slices.Equal(got, []string{want}) && !slices.Equal(got, []string{"~ ."}) {
		t.Errorf("%q, not %q", got, want)
	}
}
