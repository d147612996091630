package seatbelt_test

import (
	"cmp"
	"hash/fnv"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// TestMeaningOfRulesets asks the Landlock ruleset and the seccomp filter of
// the same policies, on a kernel that has everything.
func TestMeaningOfRulesets(t *testing.T) {
	caps := enforce.Caps{OS: "linux", Arch: "amd64", Landlock: landlock.MaxABI, Seccomp: true, SeccompNotify: true, MountNS: true}
	for s, rows := range meanings() {
		pl := places()[1]
		plan := enforce.NewPlan(s.resolve(pl), caps, s.host(pl), enforce.Options{})
		if err := plan.Err(nil, false); err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		for _, e := range rows {
			if got := allowedByPlan(t, plan, pl, e); got != e.want {
				t.Errorf("%s: %s %s: %v, want %v", s.name, e.verb, e.what, got, e.want)
			}
		}
	}
}

// allowedByPlan reports whether the kernel would let a confined command do it.
func allowedByPlan(t *testing.T, p *enforce.Plan, pl place, e expectation) bool {
	rs, file := p.Landlock, pl.in(e.what)
	if covered(p, file) {
		return false
	}
	switch e.verb {
	case reads:
		return has(rs, file, landlock.FSReadFile) || has(rs, file, landlock.FSReadDir)
	case writes:
		return has(rs, file, landlock.FSWriteFile|landlock.FSTruncate)
	case creates:
		return hasBelow(rs, file, landlock.FSMakeReg)
	case removes:
		return hasBelow(rs, file, landlock.FSRemoveFile)
	case executes:
		return has(rs, file, landlock.FSExecute)
	case connects:
		return allowedPort(rs, atoi(e.what), landlock.NetConnectTCP)
	case listens:
		return allowedPort(rs, atoi(e.what), landlock.NetBindTCP)
	case sends:
		const inet, dgram = 2, 2
		return p.Seccomp.Answer("socket", [6]uint64{inet, dgram}) == "allowed"
	case talks:
		return rs.HandledFS&landlock.FSResolveUnix == 0 || has(rs, file, landlock.FSResolveUnix)
	case signals:
		return rs.Scoped&landlock.ScopeSignal == 0
	}
	t.Fatalf("no such verb: %s", e.verb)
	return false
}

// covered reports whether the plan hides a path below a mount, where Landlock's rules do not
// matter.
func covered(p *enforce.Plan, file string) bool {
	return p.Mounts != nil && slices.ContainsFunc(p.Mounts.Mounts, func(m mounts.Mount) bool {
		return m.Kind == mounts.Mask && host.Within(file, m.Path)
	})
}

// Host has the scenario's files and nothing else; nil for none.
func (s *scenario) host(pl place) *host.Host {
	if s.files == nil {
		return nil
	}
	tree := fstest.MapFS{"proc/self/mountinfo": {}}
	for _, f := range s.files {
		tree[strings.TrimPrefix(pl.in(f), "/")] = &fstest.MapFile{Mode: 0o600}
	}
	rel := func(p string) string { return path.Clean(cmp.Or(strings.TrimPrefix(p, "/"), ".")) }
	return &host.Host{
		OS: pl.os, Dir: pl.proj, Home: pl.home,
		Lstat: func(p string) (host.Stat, error) {
			fi, err := fs.Stat(tree, rel(p))
			if err != nil {
				return host.Stat{}, err
			}
			ino := fnv.New64a()
			io.WriteString(ino, rel(p))
			return host.Stat{Mode: fi.Mode(), ID: host.FileID{Dev: 1, Ino: ino.Sum64()}}, nil // one name each
		},
		Readlink: func(string) (string, error) { return "", fs.ErrInvalid },
		ReadDir:  func(p string, n int) ([]fs.DirEntry, error) { return fs.ReadDir(tree, rel(p)) },
		ReadFile: func(p string) ([]byte, error) { return fs.ReadFile(tree, rel(p)) },
	}
}

// has reports whether the rules on a path and above it add up to rights.
func has(rs *landlock.Ruleset, p string, rights uint64) bool {
	var have uint64
	for _, r := range rs.Paths {
		if p == r.Path || r.Dir && host.Within(p, r.Path) {
			have |= r.Rights
		}
	}
	return have&rights == rights
}

// hasBelow is has for an entry of a directory: only the rules above it count.
func hasBelow(rs *landlock.Ruleset, p string, rights uint64) bool {
	var have uint64
	for _, r := range rs.Paths {
		if p != r.Path && r.Dir && host.Within(p, r.Path) {
			have |= r.Rights
		}
	}
	return have&rights == rights
}

func allowedPort(rs *landlock.Ruleset, port int, right uint64) bool {
	if rs.HandledNet&right == 0 {
		return true
	}
	for _, r := range rs.Ports {
		if int(r.Port) == port && r.Rights&right != 0 {
			return true
		}
	}
	return false
}

// TestRulesetOfDenials has the other half of the table: on Linux a denial inside a writable
// tree is a gap until it is masked, never a silent success.
func TestRulesetOfDenials(t *testing.T) {
	s := scenario{rules: []policy.Rule{given(policy.Read|policy.Write|policy.Exec, "PROJ")}, deny: []string{"PROJ/.git/hooks"},
		net: resolve.ResolvedNet{Mode: resolve.NetOpen}}
	plan := enforce.NewPlan(s.resolve(places()[1]), enforce.Caps{OS: "linux", Arch: "amd64", Landlock: landlock.MaxABI, Seccomp: true}, nil, enforce.Options{})
	masked := false
	for _, g := range plan.Gaps {
		masked = masked || g.Name == enforce.GapDeny
	}
	if !masked {
		t.Errorf("no gap for a denial inside a writable tree: %+v", plan.Gaps)
	}
}
