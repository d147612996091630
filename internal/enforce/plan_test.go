package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/seatbelt"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

func samplePath(path string, access policy.Access, mode fs.FileMode) resolve.Path {
	return resolve.Path{Path: path, Access: access, Mode: mode, ID: host.FileID{Dev: 1, Ino: 2},
		Rule: policy.Rule{Path: path, Access: access, Origin: policy.Origin{Source: "work.toml", Line: 3, Column: 7}}}
}

// samplePolicy has one rule of each kind.
func samplePolicy(mode resolve.NetMode) *resolve.Resolved {
	const char = fs.ModeDevice | fs.ModeCharDevice
	r := &resolve.Resolved{
		OS: "linux", Dir: "/home/u/p",
		Paths: []resolve.Path{
			samplePath("/usr", policy.Read|policy.Exec, fs.ModeDir),
			samplePath("/usr/lib", policy.Read, fs.ModeDir),
			samplePath("/etc/hosts", policy.Read, 0),
			samplePath("/dev/tty", policy.Read|policy.Write, char),
			samplePath("/home/u/my project", policy.Read|policy.Write|policy.Exec, fs.ModeDir),
			samplePath("/home/u/data", policy.Read|policy.Write, fs.ModeDir),
		},
		Net: resolve.ResolvedNet{Mode: mode, From: policy.Origin{Source: "--no-net"},
			Unix: []resolve.Path{samplePath("/run/user/1000/agent", 0, fs.ModeSocket)}},
	}
	if mode == resolve.NetPorts {
		r.Net.ConnectTCP = []policy.Port{{Number: 443}, {Number: 53}}
		r.Net.BindTCP = []policy.Port{{Number: 8080}, {Number: 443}}
		r.Net.From = policy.Origin{Source: "--connect-tcp"}
	}
	return r
}

func TestPlanText(t *testing.T) {
	for abi := range landlock.MaxABI + 1 {
		p := NewPlan(samplePolicy(resolve.NetPorts), Caps{OS: "linux", Arch: "amd64", Landlock: abi,
			LandlockReason: "it is not built into this kernel", Seccomp: true, Capabilities: 1<<41 - 1}, nil, Options{})

		var b strings.Builder
		if err := p.WriteLandlock(&b); err != nil {
			t.Fatal(err)
		}
		testkit.Golden(t, fmt.Sprintf("plan-abi%d.golden", abi), b.String())
	}
}

// TestPlanGaps has the gaps of each kind of machine.
func TestPlanGaps(t *testing.T) {
	var b strings.Builder
	for _, mode := range []resolve.NetMode{resolve.NetOpen, resolve.NetNone, resolve.NetPorts} {
		for _, seccomp := range []bool{true, false} {
			for abi := range landlock.MaxABI + 1 {
				p := NewPlan(samplePolicy(mode), Caps{OS: "linux", Arch: "amd64", Landlock: abi, Seccomp: seccomp}, nil, Options{})
				var names []string
				for _, g := range p.Gaps {
					if !slices.Contains(GapNames(), g.Name) {
						t.Errorf("gap %q is not among GapNames", g.Name)
					}
					if g.Promise == "" || g.Why == "" {
						t.Errorf("%+v says too little", g)
					}
					names = append(names, fmt.Sprintf("%s(%s)", g.Name, g.Kind[:1]))
				}
				fmt.Fprintf(&b, "%-5s seccomp=%-5v abi=%-2d %s\n", mode, seccomp, abi, strings.Join(names, " "))
			}
		}
	}
	testkit.Golden(t, "gaps.golden", b.String())
}

// TestPlanFailsClosed: whatever the machine lacks, a plan either keeps a core promise or has a
// gap for it.
func TestPlanFailsClosed(t *testing.T) {
	for abi := range landlock.MaxABI + 1 {
		for _, caps := range []Caps{
			{OS: "linux", Arch: "amd64", Landlock: abi, Seccomp: true},
			{OS: "linux", Arch: "amd64", Landlock: abi},
			{OS: "linux", Arch: "s390x", Landlock: abi, Seccomp: true},
			{Landlock: abi},
		} {
			for _, mode := range []resolve.NetMode{resolve.NetNone, resolve.NetPorts} {
				r := samplePolicy(mode)
				r.Deny = []resolve.DenyPath{{Pattern: "/home/u/data/secret"}}
				p := NewPlan(r, caps, treeHost(nil), Options{})
				err := p.Err(nil, false)
				has := func(name string) bool {
					return p.Err(slices.DeleteFunc(GapNames(), func(n string) bool { return n == name }), false) != nil
				}
				if !errors.Is(err, errors.ErrUnsupported) || !has(GapDeny) {
					t.Errorf("%+v %s: %v: the denial in a writable tree is no gap", caps, mode, err)
				}
				if (p.Landlock == nil) != has(GapFiles) {
					t.Errorf("%+v %s: files", caps, mode)
				}
				if (p.Seccomp == nil) != has(GapNetwork) {
					t.Errorf("%+v %s: network", caps, mode)
				}
				if (mode == resolve.NetPorts && abi < 4) != has(GapTCPPorts) {
					t.Errorf("%+v %s: ports", caps, mode)
				}
				if (abi > 0 && abi < 3 && p.Seccomp == nil) != has(GapTruncate) {
					t.Errorf("%+v %s: truncate", caps, mode)
				}
			}
		}
	}
}

func TestPlanErr(t *testing.T) {
	p := NewPlan(samplePolicy(resolve.NetNone), Caps{OS: "linux", LandlockReason: "not built"}, nil, Options{})
	var ge *GapError
	if err := p.Err(nil, false); !errors.As(err, &ge) || !strings.Contains(err.Error(), "not built") {
		t.Errorf("got %v", err)
	}
	if err := p.Err([]string{GapFiles, GapNetwork}, false); err != nil {
		t.Errorf("accepted, and yet %v", err)
	}
	if err := p.Err([]string{GapFiles, GapNetwork}, true); err == nil {
		t.Error("hardening is missing, and strict is content")
	}
	if err := p.Err(GapNames(), true); err != nil {
		t.Errorf("all accepted, and yet %v", err)
	}
}

func TestPlanCapabilities(t *testing.T) {
	root := Caps{OS: "linux", Arch: "amd64", Landlock: 7, Seccomp: true, Capabilities: 1<<41 - 1}
	p := NewPlan(samplePolicy(resolve.NetOpen), root, nil, Options{})
	kept := root.Capabilities &^ p.DropCapabilities
	if got, want := landlock.BitNames(kept, capabilityNames()), "chown dac_override fowner fsetid kill setgid setuid net_bind_service setfcap"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
	for name, bit := range map[string]uint{"sys_admin": 21, "mknod": 27, "net_raw": 13, "sys_ptrace": 19, "setpcap": 8, "dac_read_search": 2} {
		if kept&(1<<bit) != 0 {
			t.Errorf("%s is kept", name)
		}
	}
	root.Landlock = 5
	if p := NewPlan(samplePolicy(resolve.NetOpen), root, nil, Options{}); p.DropCapabilities&(1<<capKill) == 0 {
		t.Error("kill is kept where signals can leave")
	}
	user := NewPlan(samplePolicy(resolve.NetOpen), Caps{OS: "linux", Arch: "amd64", Landlock: 7, Seccomp: true}, nil, Options{})
	if user.DropCapabilities != 0 {
		t.Error("an ordinary user has nothing to drop")
	}
}

// TestPlanDoesNotTouchThePolicy: NewPlan is pure.
func TestPlanDoesNotTouchThePolicy(t *testing.T) {
	r := samplePolicy(resolve.NetPorts)
	before := fmt.Sprintf("%+v", r)
	a := NewPlan(r, Caps{OS: "linux", Arch: "arm64", Landlock: 9, Seccomp: true}, nil, Options{})
	b := NewPlan(r, Caps{OS: "linux", Arch: "arm64", Landlock: 9, Seccomp: true}, nil, Options{})
	if fmt.Sprintf("%+v", r) != before {
		t.Error("the policy changed")
	}
	var x, y strings.Builder
	if a.WriteLandlock(&x) != nil || b.WriteLandlock(&y) != nil || x.String() != y.String() {
		t.Error("two plans differ")
	}
	if !slices.Equal(a.Seccomp.Program, b.Seccomp.Program) {
		t.Error("two programs differ")
	}
}

// TestStillWritableOnce: with many rules that have no effect, the plan is indexed once, not
// once for each rule.
func TestStillWritableOnce(t *testing.T) {
	allocs := func(rules int) float64 {
		r := samplePolicy(resolve.NetOpen)
		for i := range rules {
			r.Paths = append(r.Paths, samplePath(fmt.Sprintf("/home/u/data/%d", i), policy.Read, fs.ModeDir))
		}
		p := NewPlan(r, Caps{OS: "linux", Arch: "amd64", Landlock: landlock.MaxABI, Seccomp: true}, nil, Options{})
		if said := p.stillWritable(); !strings.Contains(said, fmt.Sprintf(" and %d more: writable by ", rules-1)) {
			t.Errorf("%d rules: %q", rules, said)
		}
		return testing.AllocsPerRun(10, func() { p.stillWritable() })
	}
	const more = 500
	if few, many := allocs(2), allocs(2+more); many > few+more {
		t.Errorf("%v allocations for two rules, and %v for %d more", few, many, more)
	}
}

// TestStillWritableProtected: protected files are not reported, on either system.
func TestStillWritableProtected(t *testing.T) {
	h := treeHost(map[string]string{"/w/.vscode/tasks.json": "{}", "/w/.vscode/other.json": "{}"})
	macOS := Caps{OS: "macos", Arch: "arm64", Seatbelt: true}
	for _, caps := range []Caps{canMount(), macOS} {
		for name, told := range map[string]bool{"tasks.json": false, "other.json": true} {
			r := asked(h, "", []string{"/w"})
			r.OS = caps.OS
			p := samplePath("/w/.vscode/"+name, policy.Read, 0)
			p.Rule.Origin = policy.Origin{Source: "--ro"}
			r.Paths = append(r.Paths, p)
			if said := NewPlan(r, caps, h, Options{}).stillWritable(); (said != "") != told {
				t.Errorf("%s: %s: %q", caps.OS, name, said)
			}
		}
	}
}

func BenchmarkNewPlan(b *testing.B) {
	r := samplePolicy(resolve.NetOpen)
	for i := range 50 {
		r.Paths = append(r.Paths, samplePath(fmt.Sprintf("/opt/%d/lib", i), policy.Read, fs.ModeDir))
	}
	for b.Loop() {
		NewPlan(r, Caps{OS: "linux", Arch: "amd64", Landlock: 7, Seccomp: true}, nil, Options{})
	}
}

// TestMacToldOf: a missing start-up file can't be made, but it can appear with a directory that
// is moved there. That is reported. If it can't appear so, nothing is reported.
func TestMacToldOf(t *testing.T) {
	home := t.TempDir()
	h, err := host.HostIn(home)
	if err != nil {
		t.Fatal(err)
	}
	h.OS, h.Home, h.Env = "macos", home, []string{"HOME=" + home}
	rw := policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: home, Access: policy.Read | policy.Write, Origin: policy.Origin{Source: "--rw"}}}}}
	r, err := resolve.Policy(&rw, h)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlan(r, Caps{OS: "macos", Seatbelt: true}, &h, Options{})
	keys := filepath.Join(home, ".ssh/authorized_keys")
	if !slices.Contains(p.Seatbelt.Unmade, keys) {
		t.Errorf("not protected: %q", p.Seatbelt.Unmade)
	}
	before := p.Snapshot(&h)
	if got := before.Changes(); len(got) > 0 {
		t.Errorf("the control: %v", got)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(home, "x"), 0o700), os.WriteFile(filepath.Join(home, "x/authorized_keys"), nil, 0o600), os.Rename(filepath.Join(home, "x"), filepath.Dir(keys))); err != nil {
		t.Fatal(err)
	}
	if got := before.Changes(); len(got) != 1 || got[0].Path != keys {
		t.Errorf("reported: %v", got)
	}
}

// TestSearchedOnce: before the command a tree is searched once for denied files, and what was made
// after that is reported.
func TestSearchedOnce(t *testing.T) {
	dir := t.TempDir()
	deep := filepath.Join(dir, "a/b/c/d")
	if err := errors.Join(os.MkdirAll(deep, 0o700), os.WriteFile(filepath.Join(deep, ".env"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	h, err := host.HostIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	plain, read := h.ReadDir, 0
	h.OS = "linux"
	h.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
		if p == filepath.Dir(deep) {
			read++
		}
		return plain(p, n)
	}
	r := &resolve.Resolved{OS: "linux", Dir: dir, Paths: []resolve.Path{{Path: dir, Mode: os.ModeDir, Access: policy.Read | policy.Write}},
		Deny: []resolve.DenyPath{{Pattern: dir + "/**/.env", Glob: true}}}
	p := NewPlan(r, Caps{OS: "linux", Arch: "amd64", Landlock: 7, Seccomp: true, MountNS: true}, &h, Options{})
	later := filepath.Join(dir, "a/b/.env")
	if err := os.WriteFile(later, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before := p.Snapshot(&h)
	if read != 1 {
		t.Errorf("searched %d times", read)
	}
	if got := before.Changes(); len(got) != 1 || got[0].Path != later || read != 2 {
		t.Errorf("searched %d times, reported: %v", read, got)
	}
}

// TestMacGlobs: a file that matches a glob can't be moved away with its directory, and a
// matching link is closed together with its target.
func TestMacGlobs(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"a/b", "free"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "a/b/.env"), nil, 0o600), os.WriteFile(filepath.Join(dir, "real"), nil, 0o600),
		os.Symlink("../real", filepath.Join(dir, "free/.env"))); err != nil {
		t.Fatal(err)
	}
	h, err := host.HostIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	h.OS, h.Home, h.Env = "macos", "/Users/u", nil
	rw := policy.Policy{FS: policy.FS{
		Rules: []policy.Rule{{Path: dir, Access: policy.Read | policy.Write, Origin: policy.Origin{Source: "--rw"}}},
		Deny:  []policy.Named{{Value: "**/.env", Origin: policy.Origin{Source: "--deny"}}},
	}}
	r, err := resolve.Policy(&rw, h)
	if err != nil {
		t.Fatal(err)
	}
	p := NewPlan(r, Caps{OS: "macos", Seatbelt: true}, &h, Options{})
	text, err := seatbelt.Profile(r, *p.Seatbelt)
	if err != nil || len(p.Gaps) > 0 {
		t.Fatal(err, p.Gaps)
	}
	kernels, err := seatbelt.Path(dir)
	if err != nil {
		t.Fatal(err)
	}
	for sub, pinned := range map[string]bool{"a": true, "a/b": true, "free": false} {
		rule := `(deny file-write-unlink (literal "` + filepath.Join(kernels, sub) + `"))`
		if strings.Contains(text, rule) != pinned {
			t.Errorf("%s can be moved: %v", sub, pinned)
		}
	}
	real := Act{Op: ActOpen, Flags: ActRead, Path: filepath.Join(dir, "real")}
	if p.Decide(real).Verdict != Refused || !strings.Contains(text, `(subpath "`+filepath.Join(kernels, "real")+`")`) {
		t.Error("what a denied link leads to can be read")
	}
	unlistable := h
	unlistable.ReadDir = func(string, int) ([]fs.DirEntry, error) { return nil, syscall.EIO }
	if p := NewPlan(r, Caps{OS: "macos", Seatbelt: true}, &unlistable, Options{}); p.Err(nil, false) == nil {
		t.Error("what can't be found counts as protected")
	}
}
