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
	resolver := []string{"policy", "internal/host", "internal/resolve"}
	for _, c := range []struct {
		pkg     string
		foreign []string
	}{
		// The packages that know what a policy says and means, from the lowest up.
		{"internal/syntax", rooms()},
		{"internal/variables", rooms()},
		{"internal/nearest", rooms()},
		{"internal/presets", rooms()},
		{"internal/tree", rooms()},
		{"policy", append(rooms(), "github.com/spf13/cobra", "github.com/spf13/viper", "golang.org/x/sys/unix", mod+"internal/fork")},
		{"internal/host", append(rooms(), "github.com/spf13/cobra", "github.com/spf13/viper", mod+"internal/fork")},
		{"internal/host/hosttest", rooms("internal/host")},
		{"internal/resolve", append(rooms("policy", "internal/host"), "github.com/spf13/cobra", "github.com/spf13/viper", mod+"internal/fork")},
		{"internal/compose", append(rooms(resolver...), "github.com/spf13/cobra", "github.com/spf13/viper", mod+"internal/fork")},
		{"internal/enforce", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "internal/layer", mod + "internal/compose", mod + "policy/compose", mod + "internal/supervise", mod + "internal/track", mod + "cmd"}},
		{"internal/track", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "policy", mod + "internal/host", mod + "internal/resolve", mod + "internal/enforce", mod + "cmd"}},
		{"internal/guard", []string{"github.com/spf13/cobra", "golang.org/x/sys/unix", mod + "internal/enforce", mod + "internal/track", mod + "cmd"}},
		{"internal/learn", []string{"github.com/spf13/cobra", "golang.org/x/sys/unix", mod + "internal/enforce", mod + "internal/track", mod + "cmd"}},
		{"internal/imports", []string{"github.com/spf13/cobra", "golang.org/x/sys/unix", mod + "internal/enforce", mod + "internal/track", mod + "cmd"}},
		{"internal/fork", []string{mod + "policy", mod + "internal/host", mod + "internal/resolve", mod + "internal/enforce", mod + "internal/track", mod + "cmd"}},
		{"internal/layer", append(rooms(), mod+"internal/fork")},
		{"internal/layer/apply", append(rooms(), mod+"internal/fork")},
		{"internal/shell", rooms()},
		{"internal/glob", rooms()},
		{"internal/units", rooms()},
		{"internal/tables", rooms()},
		{"internal/egress/rule", engine("net")},
		{"internal/egress/hello", engine("net")},
		{"internal/egress/http1", engine("net")},
		{"internal/egress/names", engine()},
		{"internal/egress/relay", engine()},
		{"internal/egress/proxy", engine()},
		{"policy/compose", append(rooms(append(resolver, "internal/compose")...), "github.com/spf13/cobra", "github.com/spf13/viper", mod+"internal/fork")},
		{"enforce/sandbox", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "internal/selftest", mod + "cmd"}},
		{"internal/supervise", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "internal/selftest", mod + "cmd"}},
		{"internal/why", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "internal/compose", mod + "policy/compose", mod + "internal/supervise", mod + "internal/selftest", mod + "internal/track", mod + "cmd"}},
		{"internal/selftest", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "internal/compose", mod + "policy/compose", mod + "internal/supervise", mod + "internal/why", mod + "internal/track", mod + "cmd"}},
		{"internal/track/proc", append(rooms(), mod+"internal/fork")},
		{"internal/track/cgroup", append(rooms(), mod+"internal/fork")},
		{"internal/track/scan", append(rooms(), mod+"internal/fork", mod+"internal/track/cgroup")},
		// The packages below enforce, from the lowest up, and which of each other they may import.
		{"internal/enforce/landlock", rooms(resolver...)},
		{"internal/enforce/seccomp", rooms(resolver...)},
		{"internal/enforce/seatbelt", rooms(resolver...)},
		{"internal/enforce/deny", rooms(resolver...)},
		{"internal/enforce/mounts", rooms(append(resolver, "internal/enforce/landlock", "internal/enforce/deny")...)},
		{"internal/enforce/protect", rooms(append(resolver, "internal/enforce/landlock", "internal/enforce/deny", "internal/enforce/mounts")...)},
		{"internal/layer/review", rooms(append(resolver, "internal/enforce/landlock", "internal/enforce/deny", "internal/enforce/mounts", "internal/enforce/protect")...)},
		{"internal/enforce/broker", rooms(append(resolver, "internal/enforce/seccomp")...)},
		{"internal/enforce/answer", rooms(append(resolver, "internal/enforce/landlock", "internal/enforce/deny", "internal/enforce/mounts", "internal/enforce/seccomp", "internal/enforce/broker")...)},
		{"internal/enforce/trace", rooms(append(resolver, "internal/enforce/landlock", "internal/enforce/deny", "internal/enforce/mounts", "internal/enforce/seccomp", "internal/enforce/broker", "internal/enforce/answer")...)},
	} {
		deps := map[string]bool{}
		importsOf(t, mod+c.pkg, deps)
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
	for _, p := range []string{"policy", "policy/compose", "internal/host", "internal/resolve", "internal/compose", "internal/enforce", "internal/supervise", "enforce/sandbox", "internal/libsystem", "internal/selftest",
		"internal/enforce/landlock", "internal/enforce/seccomp", "internal/enforce/seatbelt", "internal/enforce/deny",
		"internal/enforce/mounts", "internal/enforce/protect", "internal/enforce/broker", "internal/enforce/answer", "internal/enforce/trace", "internal/track", "cmd"} {
		if !slices.Contains(but, p) {
			out = append(out, mod+p)
		}
	}
	return out
}

// engine returns what the packages of a network by name may not import: all rooms, and what knows the
// kernel or files. Without net/http and its kind, which viper brings, programs that embed zsbx do not
// pay for their initialisation.
func engine(more ...string) []string {
	return append(append(rooms(), more...), "os", "golang.org/x/sys/unix", "net/http", "crypto/tls", "net/textproto")
}
