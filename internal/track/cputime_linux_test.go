package track

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/track/proc"
)

// TestProcessorTime: a keeper that approaches the caller's limit of processor time ends its
// session while it can. A command can cause that with orphans; the test uses signals, which is
// faster.
func TestProcessorTime(t *testing.T) {
	st := tempStore(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", `ulimit -t 1; exec "$0" "$@"`, self, filepath.Dir(st.Dirs()[0]), string(Auto), "", "hider")
	c.Env = append(os.Environ(), helperEnv+"=supervisor", "HIDDEN="+hidden)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	var id string
	var keeper, pid int
	if _, err := fmt.Fscan(out, &id, &keeper, &pid); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what hides is there", func() bool { return len(escaped(t)) == 1 })
	for p, ctx := (Proc{}), deadline(t); err == nil && !p.Dead(); p, err = proc.Look(keeper) { // its supervisor does not reap it
		if ctx.Err() != nil {
			t.Fatal("the keeper does not end")
		}
		for range 1000 {
			_ = unix.Kill(keeper, unix.SIGUSR1)
		}
	}
	if r, err := st.Reap(deadline(t), id); err != nil || !r.Done() || r.How != howKeeper {
		t.Errorf("%+v, %v", r, err)
	}
	for _, p := range escaped(t) {
		t.Errorf("%d is left", p)
		_ = unix.Kill(p, unix.SIGKILL)
	}
}
