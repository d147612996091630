package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkResolve resolves the baseline with a preset and a working
// directory, which is what a usual run does, and larger policies, against the
// real file system.
func BenchmarkResolve(b *testing.B) {
	h, err := ThisHost()
	if err != nil {
		b.Fatal(err)
	}
	h.TempDir = b.TempDir()
	rust, err := Preset("rust")
	if err != nil {
		b.Fatal(err)
	}
	cases := map[string]*Policy{
		"usual": Merge(Baseline(h.OS), rust, rules(Read|Write|Exec, ".")),
		"50":    realRules(b, 50), "300": realRules(b, 300), "10000": realRules(b, MaxRules),
	}
	for _, name := range []string{"usual", "50", "300", "10000"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cases[name].Resolve(h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// realRules returns a policy of n rules for existing files, a hundred in each directory.
func realRules(b *testing.B, n int) *Policy {
	dir := b.TempDir()
	var paths []string
	for i := range n {
		name := filepath.Join(dir, fmt.Sprint(i/100), fmt.Sprint(i))
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			b.Fatal(err)
		}
		paths = append(paths, name)
	}
	return rules(Read, paths...)
}

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
