package trace

import (
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/seccomp"
	"github.com/zsbx/zsbx/internal/resolve"
)

// TestForms: each call that the filter hands over although no rule of it decides has a form, and
// the other way round. listen(2) has one for the broker's refusals; exit_group(2) is not refused.
func TestForms(t *testing.T) {
	q := seccomp.Options{Arch: runtime.GOARCH, Net: resolve.ResolvedNet{Mode: resolve.NetOpen}, Truncate: true, IoctlDev: true}
	plain := seccomp.Compile(q)
	q.Record = true
	watched := seccomp.Compile(q)
	for _, name := range watched.Names() {
		args := [6]uint64{1, 1, 1, 1, 1, 1}
		if name == "ptrace" {
			args[0] = unix.PTRACE_ATTACH
		}
		handsOver, _ := watched.Decide(name, args)
		_, refused := plain.Decide(name, args)
		form := slices.ContainsFunc(forms, func(f form) bool { return slices.Contains(f.calls, name) })
		if name != "listen" && name != "exit_group" && refused == 0 && handsOver != form {
			t.Errorf("%s: handed over: %v, has a form: %v", name, handsOver, form)
		}
	}
}
