package cmd

import (
	"go/build"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestImports checks what docs/architecture.md promises about who imports whom.
func TestImports(t *testing.T) {
	const mod = "github.com/zsbx/zsbx/"
	for _, c := range []struct {
		pkg     string
		foreign []string
	}{
		{"policy", []string{"github.com/spf13/cobra", "github.com/spf13/viper", "golang.org/x/sys/unix", mod + "policy/compose", mod + "enforce", mod + "track", mod + "cmd"}},
		{"enforce", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "policy/compose", mod + "enforce/sandbox", mod + "track", mod + "cmd"}},
		{"track", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "policy", mod + "enforce", mod + "cmd"}},
		{"internal/guard", []string{"github.com/spf13/cobra", "golang.org/x/sys/unix", mod + "enforce", mod + "track", mod + "cmd"}},
		{"internal/learn", []string{"github.com/spf13/cobra", "golang.org/x/sys/unix", mod + "enforce", mod + "track", mod + "cmd"}},
		{"internal/imports", []string{"github.com/spf13/cobra", "golang.org/x/sys/unix", mod + "enforce", mod + "track", mod + "cmd"}},
		{"internal/fork", []string{mod + "policy", mod + "enforce", mod + "track", mod + "cmd"}},
		{"internal/shell", rooms()},
		{"internal/glob", rooms()},
		{"internal/units", rooms()},
		{"internal/tables", rooms()},
		{"policy/internal/tree", rooms()},
		{"policy/compose", append(rooms("policy"), "github.com/spf13/cobra", "github.com/spf13/viper", mod+"internal/fork")},
		{"enforce/sandbox", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "enforce/selftest", mod + "cmd"}},
		{"enforce/why", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "policy/compose", mod + "enforce/sandbox", mod + "enforce/selftest", mod + "track", mod + "cmd"}},
		{"enforce/selftest", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "policy/compose", mod + "enforce/sandbox", mod + "enforce/why", mod + "track", mod + "cmd"}},
		{"track/internal/proc", append(rooms(), mod+"internal/fork")},
		{"track/internal/cgroup", append(rooms(), mod+"internal/fork")},
		{"track/internal/scan", append(rooms(), mod+"internal/fork", mod+"track/internal/cgroup")},
		// The packages below enforce, from the lowest up, and which of each other they may import.
		{"enforce/internal/landlock", rooms("policy")},
		{"enforce/internal/seccomp", rooms("policy")},
		{"enforce/internal/seatbelt", rooms("policy")},
		{"enforce/internal/deny", rooms("policy")},
		{"enforce/internal/mounts", rooms("policy", "enforce/internal/landlock", "enforce/internal/deny")},
		{"enforce/internal/protect", rooms("policy", "enforce/internal/landlock", "enforce/internal/deny", "enforce/internal/mounts")},
		{"enforce/internal/broker", rooms("policy", "enforce/internal/seccomp")},
		{"enforce/internal/answer", rooms("policy", "enforce/internal/landlock", "enforce/internal/deny", "enforce/internal/mounts", "enforce/internal/seccomp", "enforce/internal/broker")},
		{"enforce/internal/watch", rooms("policy", "enforce/internal/landlock", "enforce/internal/deny", "enforce/internal/mounts", "enforce/internal/seccomp", "enforce/internal/broker", "enforce/internal/answer")},
	} {
		deps := map[string]bool{}
		importsOf(t, mod+c.pkg, deps)
		if len(deps) < 2 {
			t.Fatalf("%s has no dependencies: %v", c.pkg, deps)
		}
		for _, f := range c.foreign {
			if f != mod+c.pkg && deps[f] {
				t.Errorf("%s imports %s", c.pkg, f)
			}
		}
	}
}

// importsOf collects what a package imports, directly and through others of this module.
func importsOf(t *testing.T, pkg string, all map[string]bool) {
	rest, own := strings.CutPrefix(pkg, "github.com/zsbx/zsbx/")
	if all[pkg] || !own {
		all[pkg] = true
		return
	}
	all[pkg] = true
	p, err := build.ImportDir(filepath.Join("..", rest), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range p.Imports {
		importsOf(t, name, all)
	}
}

// rooms returns all packages of this module except those that packages below enforce may import.
// All may import fork, which starts processes and knows none of them. policy imports
// internal/shell, which quotes words.
func rooms(but ...string) []string {
	const mod = "github.com/zsbx/zsbx/"
	var out []string
	for _, p := range []string{"policy", "policy/compose", "enforce", "enforce/sandbox", "internal/libsystem", "enforce/selftest",
		"enforce/internal/landlock", "enforce/internal/seccomp", "enforce/internal/seatbelt", "enforce/internal/deny",
		"enforce/internal/mounts", "enforce/internal/protect", "enforce/internal/broker", "enforce/internal/answer", "enforce/internal/watch", "track", "cmd"} {
		if !slices.Contains(but, p) {
			out = append(out, mod+p)
		}
	}
	return out
}
