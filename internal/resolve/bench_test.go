package resolve

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// BenchmarkResolve resolves the baseline with a preset and a working
// directory, which is what a usual run does, and larger policies, against the
// real file system.
func BenchmarkResolve(b *testing.B) {
	h, err := host.ThisHost()
	if err != nil {
		b.Fatal(err)
	}
	h.TempDir = b.TempDir()
	rust, err := policy.Preset("rust")
	if err != nil {
		b.Fatal(err)
	}
	cases := map[string]*policy.Policy{
		"usual": policy.Merge(policy.Baseline(h.OS), rust, rules(policy.Read|policy.Write|policy.Exec, ".")),
		"50":    realRules(b, 50), "300": realRules(b, 300), "10000": realRules(b, policy.MaxRules),
	}
	for _, name := range []string{"usual", "50", "300", "10000"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Policy(cases[name], h); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// realRules returns a policy of n rules for existing files, a hundred in each directory.
func realRules(b *testing.B, n int) *policy.Policy {
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
	return rules(policy.Read, paths...)
}
