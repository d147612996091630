package seatbelt_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
)

func TestPlanMacOS(t *testing.T) {
	r := macPolicy(flag("/Users/u/proj", allAccess, fs.ModeDir))
	caps := enforce.Caps{OS: "macos", Seatbelt: true}
	p := enforce.NewPlan(r, caps, nil, enforce.Options{})
	if p.Seatbelt == nil || len(p.Gaps) > 0 || len(p.Layers()) != 1 || !p.Confines() {
		t.Fatalf("%+v", p)
	}
	p.ForSession(testSession)
	if p.Seatbelt.Session != testSession {
		t.Error("the session is not in the plan")
	}
	if p := enforce.NewPlan(r, enforce.Caps{OS: "macos", SeatbeltReason: "nested"}, nil, enforce.Options{}); p.Err(nil, false) == nil || p.Confines() {
		t.Error("a machine without Seatbelt keeps promises")
	}
	r = macPolicy(flag("/Users/u/a\nb", allAccess, fs.ModeDir))
	if p := enforce.NewPlan(r, caps, nil, enforce.Options{}); p.Err(nil, false) == nil || p.Gaps[0].Origin.Source != "--rw" {
		t.Errorf("a path that can't be written down passes: %+v", p.Gaps)
	}
}

// TestAskedInGitDirectory: a directory that the user opens by name can be written, although it is
// in a git directory or has the user's start-up files.
func TestAskedInGitDirectory(t *testing.T) {
	dirs := []string{"/Users/u/proj/.git/lfs", "/Users/u/.config/fish"}
	h := &host.Host{
		OS: "macos",
		Lstat: func(p string) (host.Stat, error) {
			if slices.ContainsFunc(dirs, func(d string) bool { return host.Within(d, p) }) {
				return host.Stat{Mode: fs.ModeDir}, nil
			}
			return host.Stat{}, fs.ErrNotExist
		},
		Readlink: func(string) (string, error) { return "", fs.ErrInvalid },
		ReadDir:  func(string, int) ([]fs.DirEntry, error) { return nil, fs.ErrPermission },
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
	}
	for _, dir := range dirs {
		r := macPolicy(flag(dir, allAccess, fs.ModeDir))
		r.Home = "/Users/u"
		p := enforce.NewPlan(r, enforce.Caps{OS: "macos", Seatbelt: true}, h, enforce.Options{})
		p.ForSession(testSession)
		if !compile(t, r, *p.Seatbelt).Allowed("file-write-create", file(dir+"/x")) {
			t.Errorf("nothing can be made in %s", dir)
		}
	}
}

// TestProtectOnMacOS: files that git and the user's shell run can't be made, those of a
// project can.
func TestProtectOnMacOS(t *testing.T) {
	there := map[string]fs.FileMode{
		"/Users/u/proj/.git": fs.ModeDir, "/Users/u/proj/.git/HEAD": 0, "/Users/u/proj/.git/config": 0, "/Users/u/proj/.git/objects": fs.ModeDir,
		"/Users/u/proj/.git/refs": fs.ModeDir, "/Users/u/proj/.envrc": 0,
	}
	h := &host.Host{
		OS: "macos",
		Lstat: func(p string) (host.Stat, error) {
			if m, ok := there[p]; ok {
				return host.Stat{Mode: m}, nil
			}
			if p == "/" || host.Within("/Users/u/proj", p) {
				return host.Stat{Mode: fs.ModeDir}, nil
			}
			return host.Stat{}, fs.ErrNotExist
		},
		Readlink: func(string) (string, error) { return "", fs.ErrInvalid },
		ReadDir: func(p string, _ int) ([]fs.DirEntry, error) {
			if p == "/Users/u/proj" { // each name is looked up
				return nil, fs.ErrPermission
			}
			return nil, fs.ErrNotExist
		},
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
	}
	r := macPolicy(flag("/Users/u/proj", allAccess, fs.ModeDir))
	r.Home = "/Users/u/proj"
	p := enforce.NewPlan(r, enforce.Caps{OS: "macos", Seatbelt: true}, h, enforce.Options{
		Protect: []string{"/Users/u/proj/state"}, Hide: []string{"/Users/u/proj/state", "/Users/u/proj"},
	})
	for _, want := range []string{"/Users/u/proj/.git/config", "/Users/u/proj/.git/hooks", "/Users/u/proj/.envrc", "/Users/u/proj/state", "/Users/u/proj/Library/Services"} {
		if !slices.Contains(p.Seatbelt.Protect, want) {
			t.Errorf("%s is not protected: %q", want, p.Seatbelt.Protect)
		}
	}
	for _, free := range []string{"/Users/u/proj/.vscode/tasks.json", "/Users/u/proj/.git/index", "/Users/u/proj/.git/rebase-merge"} {
		if slices.Contains(p.Seatbelt.Protect, free) {
			t.Errorf("%s can't be made", free)
		}
	}
	o := *p.Seatbelt
	o.Session = testSession
	prof := compile(t, r, o)
	if prof.Allowed("file-read-data", file("/Users/u/proj/state/record")) || !prof.Allowed("file-read-data", file("/Users/u/proj/src")) {
		t.Error("what is hidden can be read, or what the policy names can't")
	}
	for _, spelling := range []string{"commondir", "Commondir", "COMMONDIR", "conﬁg.worktree", "Config.Worktree", "Hooks/pre-commit", "hoo\u212as", "hook\u017f/pre-commit"} {
		if prof.Allowed("file-write-create", file("/Users/u/proj/.git/"+spelling)) {
			t.Errorf(".git/%s can be made", spelling)
		}
	}
	for _, other := range []string{"commondirs", "Commondi", "xhooks", "\u017f", "日本", "config.worktree.lock"} {
		if !prof.Allowed("file-write-create", file("/Users/u/proj/.git/"+other)) {
			t.Errorf(".git/%s can't be made", other)
		}
	}
	if prof.Allowed("file-write-create", file("/Users/u/proj/.git/hooks/pre-commit")) || !prof.Allowed("file-write-create", file("/Users/u/proj/.git/index.lock")) {
		t.Error("git's hooks can be written, or git can't work")
	}
	// check says what the kernel does.
	for _, path := range []string{
		"/Users/u/proj/src", "/Users/u/proj/.git/config", "/Users/u/proj/.git/Commondir", "/Users/u/proj/.git/hooks/pre-commit", "/Users/u/proj/.git/index",
		"/Users/u/proj/.envrc", "/Users/u/proj/.vscode/tasks.json", "/Users/u/proj/state/record", "/Users/u/other", "/Users/u/proj/library/QuickLook/x.qlgenerator", "/Users/u/proj/Library/Caches/x", "/Users/u/proj/Library/launchagents/x.plist",
	} {
		for op, act := range map[string]enforce.Act{
			"file-read-data":  {Op: enforce.ActOpen, Flags: enforce.ActRead, Path: path},
			"file-write-data": {Op: enforce.ActOpen, Flags: enforce.ActWrite, Path: path},
		} {
			said := p.Decide(act)
			if is := prof.Allowed(op, file(path)); is != (said.Verdict == enforce.Allowed) {
				t.Errorf("%s: %s is allowed: %v, and check says %+v", path, op, is, said)
			}
			if strings.HasSuffix(path, "/config") && op == "file-write-data" && p.Hint(act, &said).Flags != "--rw ./.git/config" {
				t.Errorf("%s: %+v", path, p.Hint(act, &said))
			}
		}
	}
	if got := p.Covered()["protect"]; !slices.Contains(got, "/Users/u/proj/.envrc") {
		t.Errorf("profile shows %q", got)
	}
}
