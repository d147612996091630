package attack_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/why"
)

// TestWhyOrder draws commands that are refused things, fail for ordinary reasons and succeed. All
// of this is survived, except for the last thing, which decides the exit status. That one is the
// cause, and nothing is if zsbx has nothing to do with it.
func TestWhyOrder(t *testing.T) {
	needLandlock(t, 1)
	kinds := []string{"read", "create", "mkdir", "missing", "nodir", "locked", "fine", "nothing"}
	rng := rand.New(rand.NewPCG(1, 2))
	rounds := 24
	if testing.Short() {
		rounds = 6
	}
	for round := range rounds {
		p := newPlace(t)
		var script []string
		var decides, path string
		steps := 2 + rng.IntN(4)
		for i := range steps {
			kind := kinds[rng.IntN(len(kinds))]
			for i == steps-1 && (kind == "fine" || kind == "nothing" || kind == "locked" && os.Geteuid() == 0) {
				kind = kinds[rng.IntN(len(kinds))]
			}
			dir := filepath.Join(p.out, fmt.Sprint("d", i))
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			write := func(name string, mode os.FileMode) string {
				if err := os.WriteFile(name, nil, mode); err != nil {
					t.Fatal(err)
				}
				return name
			}
			var step string
			switch kind {
			case "read":
				path = write(filepath.Join(dir, "file"), 0o644)
				step = "cat " + path
			case "create":
				path = filepath.Join(dir, "new")
				step = "sh -c ': >" + path + "'"
			case "mkdir":
				path = filepath.Join(dir, "made")
				step = "mkdir " + path
			case "missing":
				path = filepath.Join(p.in, fmt.Sprint("missing", i))
				step = "cat " + path
			case "nodir":
				path = filepath.Join(p.in, fmt.Sprint("nodir", i), "x")
				step = "sh -c ': >" + path + "'"
			case "locked":
				path = write(filepath.Join(p.in, fmt.Sprint("locked", i)), 0)
				step = "cat " + path
			case "fine":
				step = "cat " + write(filepath.Join(p.in, fmt.Sprint("fine", i)), 0o644)
			case "nothing":
				step = "true"
			}
			if i == steps-1 {
				decides, step = kind, step+" || exit 3"
			} else {
				step += " 2>/dev/null || true"
			}
			script = append(script, step)
		}
		line := strings.Join(script, "\n")
		status, out, got := watched(t, p, shellEnv(p), "/bin/sh", "-c", line)
		if status != 3 {
			t.Fatalf("status %d: %s\n%s", status, out, line)
		}
		r := why.New(planOf(p), got, status)
		refused := decides == "read" || decides == "create" || decides == "mkdir"
		wrong := ""
		switch {
		case refused && (r.Causes != 1 || !r.Entries[0].Cause):
			wrong = "the last refusal is not the cause"
		case refused && r.Entries[0].Paths == 1 && r.Entries[0].Path != path:
			wrong = "another refusal is the cause"
		case !refused && (r.Causes != 0 || r.Last == nil || r.Last.Path != path):
			wrong = "a failure without zsbx is not told"
		}
		if wrong != "" {
			t.Errorf("round %d: %s: %s\n%s\n%d causes, last %+v\n%s", round, wrong, path, line, r.Causes, r.Last, strings.Join(said(got), "\n"))
		}
	}
}

// planOf returns the plan that watched makes.
func planOf(p *place) *enforce.Plan {
	return enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), enforce.Options{Explain: true})
}
