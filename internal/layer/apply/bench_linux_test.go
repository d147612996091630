package apply

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var benchFiles = flag.Int("files", 20_000, "how many files BenchmarkApply makes")

// BenchmarkApply compares an apply of new small files with cp -a of them: all in new directories, and all in one
// that exists; on the disk and in memory; with and without links between the layer and the tree. It reports the best
// of all rounds: -benchtime 5x is enough. Processor time says more than time if others use the machine.
func BenchmarkApply(b *testing.B) {
	defer func() { inTrees = false }()
	for _, where := range []string{"disk", "memory"} {
		for _, inTrees = range []bool{false, true} {
			for _, flat := range []bool{false, true} {
				b.Run(fmt.Sprintf("%s/inTrees=%t/flat=%t", where, inTrees, flat), func(b *testing.B) {
					best := make(map[string]float64)
					for range b.N {
						dir := b.TempDir()
						if where == "memory" {
							dir = memory(b)
						}
						benchApply(b, dir, flat, best)
						_ = os.RemoveAll(dir)
					}
					for what, least := range best {
						b.ReportMetric(least, what)
					}
					b.ReportMetric(best["s-apply"]/best["s-cp"], "ratio")
					b.ReportMetric(best["cpu-apply"]/best["cpu-cp"], "ratio-cpu")
				})
			}
		}
	}
}

func benchApply(b *testing.B, top string, flat bool, best map[string]float64) {
	w := newWorld(b, top, "")
	text := make([]byte, 1500)
	for i := range *benchFiles {
		dir := fmt.Sprintf("%s/new/%d/%d", w.upper, i/1000, i/50)
		if flat {
			dir = w.upper
		}
		if i%50 == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(fmt.Sprintf("%s/file%d", dir, i), text, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	w.freeze(b)
	_ = exec.Command("sync", "-f", w.top).Run()
	measure := func(what string, who int, act func() error) {
		begin := time.Now()
		cpu := cpuTime(who)
		if err := act(); err != nil {
			b.Fatal(err)
		}
		for name, took := range map[string]time.Duration{"s-": time.Since(begin), "cpu-": cpuTime(who) - cpu} {
			name += what
			if least, is := best[name]; !is || took.Seconds() < least {
				best[name] = took.Seconds()
			}
		}
	}
	cp := exec.Command("cp", "-a", w.upper, filepath.Join(w.top, "copy"))
	measure("cp", unix.RUSAGE_CHILDREN, cp.Run)
	measure("sync", unix.RUSAGE_CHILDREN, exec.Command("sync", "-f", w.top).Run)
	measure("read", unix.RUSAGE_SELF, func() error {
		_, err := w.Changes()
		return err
	})
	measure("apply", unix.RUSAGE_SELF, func() error {
		res, err := Apply(w.Layer, Options{})
		if err == nil && res.Left != 0 {
			err = fmt.Errorf("%d changes are left", res.Left)
		}
		return err
	})
	measure("undo", unix.RUSAGE_SELF, func() error { return Undo(w.Layer, Options{}) })
}

// cpuTime returns what this process or its children have used of processors.
func cpuTime(who int) time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
