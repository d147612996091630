package attack_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// benchPolicy allows about as much as the default policy.
func benchPolicy(b *testing.B) *resolve.Resolved {
	b.Helper()
	p := &place{policy: &resolve.Resolved{OS: "linux", Dir: "/", Net: resolve.ResolvedNet{Mode: resolve.NetOpen}}}
	for _, dir := range []string{"/etc", "/proc", "/opt", "/var/lib/dpkg", "/var/cache", "/sys/devices/system", "/sys/fs/cgroup",
		"/usr", "/dev/full", "/dev/ptmx", "/dev/pts", "/dev/random", "/dev/shm", "/dev/tty", "/dev/urandom", "/dev/zero", "/dev/null"} {
		p.allow(b, policy.Read|policy.Exec, dir)
	}
	p.allow(b, policy.Read|policy.Write|policy.Exec, b.TempDir())
	return p.policy
}

// BenchmarkConfine measures what the calling process does for the restrictions.
func BenchmarkConfine(b *testing.B) {
	plan := enforce.NewPlan(benchPolicy(b), enforce.Probe(), nil, enforce.Options{})
	for b.Loop() {
		c := &fork.Command{}
		if err := confine(plan, c); err != nil {
			b.Fatal(err)
		}
		for _, f := range c.Cleanup {
			f()
		}
	}
}

// BenchmarkStart starts a program that does nothing, with all restrictions, with one of them,
// and with none.
func BenchmarkStart(b *testing.B) {
	r := benchPolicy(b)
	all := enforce.Probe()
	noSeccomp, noLandlock := all, all
	noSeccomp.Seccomp, noLandlock.Landlock = false, 0
	for _, bb := range []struct {
		name string
		plan *enforce.Plan
	}{
		{"bare", nil},
		{"landlock", enforce.NewPlan(r, noSeccomp, nil, enforce.Options{})},
		{"seccomp", enforce.NewPlan(r, noLandlock, nil, enforce.Options{})},
		{"all", enforce.NewPlan(r, all, nil, enforce.Options{})},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				c := &fork.Command{Path: "/bin/true", Args: []string{"true"}}
				p, err := startUnder(bb.plan, c)
				if err != nil {
					b.Fatal(err)
				}
				for {
					if ev, err := p.Next(); err != nil || ev.Kind == fork.Exited {
						break
					}
				}
				p.Close()
			}
		})
	}
}

// BenchmarkManyPaths plans and opens a policy of 300 paths that can't be
// merged.
func BenchmarkManyPaths(b *testing.B) {
	p := &place{policy: &resolve.Resolved{OS: "linux", Dir: "/", Net: resolve.ResolvedNet{Mode: resolve.NetOpen}}}
	dir := b.TempDir()
	for i := range 300 {
		sub := fmt.Sprintf("%s/%d/a/b", dir, i)
		if err := os.MkdirAll(sub, 0o755); err != nil {
			b.Fatal(err)
		}
		p.allow(b, policy.Read, sub)
	}
	caps := enforce.Probe()
	for b.Loop() {
		c := &fork.Command{}
		if _, err := enforce.NewPlan(p.policy, caps, nil, enforce.Options{}).Confine(c); err != nil {
			b.Fatal(err)
		}
		for _, f := range c.Cleanup {
			f()
		}
	}
}
