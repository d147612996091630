package why

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/enforce/trace"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/learn"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// resolved is a policy without rules, on a machine with these directories.
func resolved(t *testing.T, dirs ...string) *resolve.Resolved {
	h := host.Host{OS: "linux", Dir: "/home/u/p", Home: "/home/u", Env: []string{"HOME=/home/u", "PATH=/usr/bin"},
		Lstat: func(p string) (host.Stat, error) {
			if i := slices.Index(dirs, p); p == "/" || i >= 0 {
				return host.Stat{Mode: fs.ModeDir, ID: host.FileID{Dev: 1, Ino: uint64(i + 2)}}, nil
			}
			return host.Stat{}, syscall.ENOENT
		},
		Readlink: func(string) (string, error) { return "", syscall.EINVAL },
	}
	r, err := resolve.Policy(&policy.Policy{}, h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestReport ranks the refusals of a build that failed because it could not write.
func TestReport(t *testing.T) {
	plan := &enforce.Plan{Policy: resolved(t, "/home", "/home/u", "/home/u/p", "/home/u/.cache", "/home/u/.cache/b")}
	plan.Policy.EnvDrop = []string{"EDITOR_X", "GITHUB_TOKEN"}
	one := func(path string, flags answer.Flags, left int, ordinary bool) enforce.Refusal {
		act := answer.Act{Op: answer.Open, Flags: flags, Path: path}
		acc := policy.Read
		if flags&answer.Write != 0 {
			acc = policy.Write
		}
		return enforce.Refusal{
			Refusal: trace.Refusal{Act: act, Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EACCES", Proved: true, Ordinary: ordinary, Count: 1, Left: left, When: 0.5},
			Answer:  enforce.Answer{Answer: answer.Answer{Verdict: answer.Refused, By: answer.Landlock}, Reason: "no rule", Needs: []learn.Need{{Path: path, Access: acc, Change: flags&answer.Creat != 0}}},
		}
	}
	got := enforce.Refusals{Report: trace.Report{Seen: 100, Proved: true}, List: []enforce.Refusal{
		one("/home/u/.gitconfig", answer.Read, 2, false),
		one("/home/u/.cache/b/1", answer.Read, 50, false),
		one("/home/u/.cache/b/2", answer.Write|answer.Creat, 40, false),
		one("/home/u/.cache/b/3", answer.Read, 60, false),
		one("/etc/shadow", answer.Read, 1, true),
		one("/home/u/p/out", answer.Write|answer.Creat, 1, false),
	}}
	r := New(plan, got, 2)
	var order []string
	for _, e := range r.Entries {
		order = append(order, e.Flags)
	}
	want := []string{"--rw .", "--rw-noexec ~/.cache/b", "--ro ~/.gitconfig"}
	if len(order) != 3 || order[0] != want[0] || order[1] != want[1] || order[2] != want[2] {
		t.Errorf("order %q, want %q", order, want)
	}
	if !r.Entries[0].Cause || r.Entries[1].Cause || r.Entries[2].Cause || r.Entries[2].Harmless == "" {
		t.Errorf("causes: %+v", r.Entries)
	}
	if r.Ordinary != 1 || len(r.Environment) != 1 || r.Entries[1].Paths != 3 {
		t.Errorf("%+v", r)
	}
	if New(plan, got, 0).Causes != 0 {
		t.Error("what succeeded has a cause")
	}
}

// TestHarmless: cmake looks for packages beside each directory on PATH, and the Java machine
// for others of its kind in /tmp. Other directories that they can't list may be the cause.
func TestHarmless(t *testing.T) {
	for _, c := range []struct {
		verb, path, program string
		want                bool
	}{
		{"list", "/home/u/.cargo", "cmake", true},
		{"list", "/home/u", "cmake", true},
		{"list", "/home/u/sdk", "cmake", false},
		{"list", "/opt/sdk", "cmake", false},
		{"list", "/home/u/.cargo", "cargo", false},
		{"read", "/home/u/.cargo/registry/x", "cmake", false},
		{"list", "/tmp/hsperfdata_u", "java", true},
		{"list", "/tmp/data", "java", false},
		{"create", "/tmp/hsperfdata_u", "java", false},
	} {
		if got := harmless("/home/u", c.verb, c.path, c.program) != ""; got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestFallback: dmesg calls syslog(2) if it can't read /dev/kmsg, which a rule could allow.
func TestFallback(t *testing.T) {
	r := &Report{Status: 1, Entries: []Entry{{Verb: "call", Refusal: trace.Refusal{Left: 1}}, {Verb: "read", Refusal: trace.Refusal{Left: 3}}}}
	r.rank(nil)
	if r.Entries[0].Verb != "read" {
		t.Errorf("%+v", r.Entries)
	}
}

// TestGains: a program that ran without its file's rights is a less likely cause than a
// refusal.
func TestGains(t *testing.T) {
	gains := Entry{Verb: "exec", By: string(answer.NoNewPrivs), Refusal: trace.Refusal{Left: 1, When: 0.9}}
	r := &Report{Status: 1, Entries: []Entry{gains, {Verb: "create", By: "mounts", Refusal: trace.Refusal{Left: 20, When: 0.1}}}}
	r.rank(nil)
	if r.Entries[0].Verb != "create" || !r.Entries[0].Cause || r.Entries[1].Cause {
		t.Errorf("%+v", r.Entries)
	}
	r = &Report{Status: 1, Entries: []Entry{gains}}
	r.rank(nil)
	if !r.Entries[0].Cause {
		t.Errorf("alone: %+v", r.Entries)
	}
	r = &Report{Status: 1, Entries: []Entry{gains, gains, {Verb: "call", Refusal: trace.Refusal{Left: 1}}}} // su(1) logs its failure
	r.rank(nil)
	if r.Entries[0].Verb != "call" || !r.Entries[1].Cause || r.Causes != 2 {
		t.Errorf("beside a call: %+v", r.Entries)
	}
	gains.Errno = "EPERM"
	r = &Report{Status: 1, Entries: []Entry{{Verb: "create", By: "mounts", Refusal: trace.Refusal{Left: 1}}, gains}}
	r.rank(nil)
	if r.Entries[0].Verb != "exec" || r.Causes != 2 {
		t.Errorf("did not start: %+v", r.Entries)
	}
}

// TestCopied: if programs copy because they can't rename, what keeps them from copying is the
// cause.
func TestCopied(t *testing.T) {
	plan := &enforce.Plan{Policy: resolved(t, "/home", "/home/u", "/home/u/p", "/home/u/d")}
	const file = "/home/u/d/f"
	one := func(act answer.Act, errno string, by answer.Means, need learn.Need) enforce.Refusal {
		return enforce.Refusal{
			Refusal: trace.Refusal{Act: act, Answer: answer.Answer{Verdict: answer.Refused}, Errno: errno, Proved: true, Count: 1, Left: 1},
			Answer:  enforce.Answer{Answer: answer.Answer{Verdict: answer.Refused, By: by}, Reason: "no rule", Needs: []learn.Need{need}},
		}
	}
	r := New(plan, enforce.Refusals{Report: trace.Report{Proved: true}, List: []enforce.Refusal{
		one(answer.Act{Op: answer.Rename, Path: file, To: "/home/u/p/g"}, "EXDEV", "mounts", learn.Need{Path: file, Access: policy.Write, Change: true}),
		one(answer.Act{Op: answer.Open, Flags: answer.Read, Path: file}, "EACCES", "landlock", learn.Need{Path: file, Access: policy.Read}),
	}}, 1)
	if len(r.Entries) != 2 || r.Causes != 1 || r.Entries[0].Verb != "read" || r.Entries[0].Harmless != "" || r.Entries[0].Flags == "" || r.Entries[1].Harmless == "" {
		t.Errorf("%+v", r.Entries)
	}
}

// TestMany: refusals in many directories do not need a plan for each.
func TestMany(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", top)
	var got enforce.Refusals
	for i := range 100 {
		act := answer.Act{Op: answer.Open, Flags: answer.Write | answer.Creat, Path: fmt.Sprintf("%s/d/%d/e/made", top, i), Missing: true}
		got.List = append(got.List, enforce.Refusal{
			Refusal: trace.Refusal{Act: act, Answer: answer.Answer{Verdict: answer.Refused}, Errno: "EROFS", Proved: true, Count: 1, Left: 1},
			Answer:  enforce.Answer{Answer: answer.Answer{Verdict: answer.Refused, By: answer.Mounts}, Reason: "no rule", Needs: []learn.Need{{Path: act.Path, Access: policy.Write, Change: true}}},
		})
		if err := os.MkdirAll(filepath.Dir(act.Path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree := filepath.Join(top, "tree")
	if err := os.MkdirAll(filepath.Join(tree, ".git/hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	h, err := host.HostIn(tree)
	if err != nil {
		t.Fatal(err)
	}
	looks, lstat := 0, h.Lstat
	h.OS, h.Lstat = "linux", func(p string) (host.Stat, error) {
		if p == filepath.Join(tree, ".git") {
			looks++
		}
		return lstat(p)
	}
	rw := policy.Rule{Path: tree, Access: policy.Read | policy.Write}
	r, err := resolve.Policy(&policy.Policy{FS: policy.FS{Rules: []policy.Rule{rw}}}, h)
	if err != nil {
		t.Fatal(err)
	}
	caps := enforce.Caps{OS: "linux", Arch: "amd64", Landlock: 7, Seccomp: true, MountNS: true}
	looks = 0
	plan := enforce.NewPlan(r, caps, r.Host(), enforce.Options{})
	one := looks
	if report := New(plan, got, 1); len(report.Entries) != 100 || report.Entries[0].Flags == "" {
		t.Errorf("%d entries, %+v", len(report.Entries), report.Entries[0])
	}
	if one == 0 || looks > 5*one {
		t.Errorf("a plan looks %d times, all with the report %d times", one, looks)
	}
}
