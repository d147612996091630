package attack_test

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/policy"
)

// TestDecideDrawn draws policies and acts.
func TestDecideDrawn(t *testing.T) {
	needLandlock(t, 3)
	_ = flag.Set("rapid.checks", strconv.Itoa(*decideRounds))
	_ = flag.Set("rapid.nofailfile", "true")
	dirs := []string{"a", "a/b", "a/b/c", "d", "d/e", "d/.git"}
	base := t.TempDir()
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		dir := filepath.Join(base, strconv.Itoa(round))
		tb := &drawn{TB: t, rt: rt}
		for _, d := range dirs {
			write := func(f string) {
				if err := os.WriteFile(filepath.Join(dir, d, f), []byte("#!/bin/sh\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(filepath.Join(dir, d, "s"), 0o755); err != nil {
				t.Fatal(err)
			}
			write("f")
			write("g")
			if d == "d/.git" {
				write("config")
			}
		}
		defer os.RemoveAll(dir)
		defer openAgain(dir)
		p := newPlace(t)
		p.dir = dir
		names := []string{"d/.git/config", "d/.git/config"}
		for _, d := range dirs {
			names = append(names, d, d+"/f", d+"/g", d+"/s", d+"/n", d+"/s/n")
		}
		drawPath := rapid.SampledFrom(names)
		for range rapid.IntRange(0, 4).Draw(rt, "rules") {
			what := dir + "/" + drawPath.Draw(rt, "rule")
			p.allow(t, rapid.SampledFrom([]policy.Access{policy.Read, policy.Read | policy.Exec, policy.Read | policy.Write, policy.Read | policy.Write | policy.Exec}).Draw(rt, "access"), what)
		}
		if rapid.Bool().Draw(rt, "repository") { // its configuration is protected
			p.allow(t, policy.Read|policy.Write, dir+"/d")
		}
		for range rapid.IntRange(0, 2).Draw(rt, "denials") {
			p.deny(dir + "/" + drawPath.Draw(rt, "denial"))
		}
		plans := decidePlans(t, p)
		plan := plans[rapid.SampledFrom([]string{"mounts", "rules"}).Draw(rt, "plan")]
		if plan == nil || plan.Err(nil, false) != nil {
			return
		}
		batch := []attempt{}
		for range 20 {
			x := attempt{deed: rapid.SampledFrom(deeds()).Draw(rt, "act"), from: dir + "/" + drawPath.Draw(rt, "path")}
			if x.two {
				x.to = dir + "/" + drawPath.Draw(rt, "to")
			}
			batch = append(batch, x)
		}
		compareActs(tb, p, plan, batch)
	})
}

// drawn is a test that reports its failures to rapid.
type drawn struct {
	testing.TB
	rt *rapid.T
}

func (d *drawn) Error(args ...any)            { d.rt.Error(args...) }
func (d *drawn) Fatalf(f string, args ...any) { d.rt.Fatalf(f, args...) }
