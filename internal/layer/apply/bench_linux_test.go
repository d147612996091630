package apply

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkApply compares an apply of new small files with cp -a of them: all in new directories,
// and all in one that exists. -benchtime 1x is enough.
func BenchmarkApply(b *testing.B) {
	for _, flat := range []bool{false, true} {
		b.Run(fmt.Sprint("flat=", flat), func(b *testing.B) {
			for range b.N {
				benchApply(b, flat, benchFiles)
			}
		})
	}
}

const benchFiles = 20_000

func benchApply(b *testing.B, flat bool, files int) {
	w := newWorld(b, b.TempDir(), "")
	text := make([]byte, 1500)
	for i := range files {
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
	begin := time.Now()
	if err := exec.Command("cp", "-a", w.upper, filepath.Join(w.top, "copy")).Run(); err != nil {
		b.Fatal(err)
	}
	cp := time.Since(begin)
	_ = exec.Command("sync", "-f", w.top).Run()
	synced := time.Since(begin)

	begin = time.Now()
	all, err := w.Changes()
	read := time.Since(begin)
	if err != nil {
		b.Fatal(err)
	}
	begin = time.Now()
	res, err := Apply(w.Layer, Options{})
	if err != nil || res.Applied != len(all) {
		b.Fatal(err, res)
	}
	applied := time.Since(begin)
	begin = time.Now()
	if err := Undo(w.Layer); err != nil {
		b.Fatal(err)
	}
	undone := time.Since(begin)
	b.ReportMetric(cp.Seconds(), "s-cp")
	b.ReportMetric(synced.Seconds(), "s-cp-sync")
	b.ReportMetric(read.Seconds(), "s-read")
	b.ReportMetric(applied.Seconds(), "s-apply")
	b.ReportMetric(undone.Seconds(), "s-undo")
	b.ReportMetric(applied.Seconds()/cp.Seconds(), "ratio")
}
