package policy

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkDecodeTOML(b *testing.B) {
	var large strings.Builder
	large.WriteString("[fs]\nro = [\n")
	for i := range MaxRules - 1 {
		fmt.Fprintf(&large, "  \"/data/dir/%d\",\n", i)
	}
	large.WriteString("]\n")
	for name, text := range map[string]string{"usual": fullTOML, "10000": large.String()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				mustTOML(b, text)
			}
		})
	}
}

func BenchmarkHash(b *testing.B) {
	p := Merge(Baseline("linux"), mustTOML(b, fullTOML))
	b.ReportAllocs()
	for b.Loop() {
		p.Hash()
	}
}

// BenchmarkMerge merges what a usual run merges: the baseline, presets, and what was asked for.
func BenchmarkMerge(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		all := []*Policy{Baseline("linux")}
		for _, name := range []string{"git", "go", "node:tools", "python:tools", "local", "rust:tools", "cc"} {
			p, err := Preset(name)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, p)
		}
		Merge(append(all, rules(Read, "."))...)
	}
}
