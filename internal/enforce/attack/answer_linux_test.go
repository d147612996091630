package attack_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/answer"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// decideRounds is how many policies the property test draws.
var decideRounds = flag.Int("decide.rounds", 200, "policies that TestDecideDrawn draws, with twenty acts each")

// deed is an act for Decide, in the form that the confined test binary does.
type deed struct {
	name string // of fileActs
	op   enforce.Act
	two  bool
}

func deeds() []deed {
	return []deed{
		{"read", enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActRead}, false},
		{"write", enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActWrite}, false},
		{"readwrite", enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActRead | enforce.ActWrite}, false},
		{"d-trunc-ro", enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActRead | answer.Trunc}, false},
		{"d-trunc-wo", enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActWrite | answer.Trunc}, false},
		{"d-creat", enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActWrite | enforce.ActCreat}, false},
		{"list", enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActRead}, false},
		{"tmpfile", enforce.Act{Op: answer.TempFile, Flags: enforce.ActRead | enforce.ActWrite}, false},
		{"truncate", enforce.Act{Op: answer.Truncate}, false},
		{"exec", enforce.Act{Op: enforce.ActExec}, false},
		{"mkdir", enforce.Act{Op: answer.Make, Mode: fs.ModeDir}, false},
		{"symlink", enforce.Act{Op: answer.Make, Mode: fs.ModeSymlink}, false},
		{"mkfifo", enforce.Act{Op: answer.Make, Mode: fs.ModeNamedPipe}, false},
		{"mkreg", enforce.Act{Op: answer.Make}, false},
		{"mkchar", enforce.Act{Op: answer.Make, Mode: fs.ModeDevice | fs.ModeCharDevice}, false},
		{"mkblock", enforce.Act{Op: answer.Make, Mode: fs.ModeDevice}, false},
		{"unlink", enforce.Act{Op: answer.Remove}, false},
		{"rmdir", enforce.Act{Op: answer.Remove, Mode: fs.ModeDir}, false},
		{"chmod", enforce.Act{Op: answer.Metadata}, false},
		{"rename", enforce.Act{Op: answer.Rename}, true},
		{"exchange", enforce.Act{Op: answer.Exchange}, true},
		{"link", enforce.Act{Op: answer.Link}, true},
	}
}

// decideActs returns acts that fileActs lacks. "deeds" does several and writes the kernel's
// answers, until one of them may have changed something.
func decideActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"deeds": func(a []string) error {
			all := acts()
			for ; len(a) > 0; a = a[3:] {
				err := all[a[0]](a[1:3])
				errno, _ := err.(syscall.Errno)
				fmt.Println(int(errno))
				if err == nil && !slices.Contains([]string{"read", "list"}, a[0]) {
					break
				}
			}
			return nil
		},
		"d-trunc-ro": func(a []string) error { return open(a[0], unix.O_RDONLY|unix.O_TRUNC) },
		"d-trunc-wo": func(a []string) error { return open(a[0], unix.O_WRONLY|unix.O_TRUNC) },
		"d-creat":    func(a []string) error { return open(a[0], unix.O_WRONLY|unix.O_CREAT) },
	}
}

// natural reports whether an error is one that the plan does not decide: a file exists already,
// is missing, or is of another kind.
func natural(e syscall.Errno) bool {
	return slices.Contains([]syscall.Errno{0, unix.EEXIST, unix.ENOENT, unix.ENOTDIR, unix.EISDIR, unix.ENOTEMPTY, unix.EINVAL, unix.ENOEXEC, unix.ENXIO, unix.ELOOP}, e)
}

// facts fills in what the act must say about its paths, without any confinement.
func facts(a enforce.Act, from, to string) enforce.Act {
	look := func(p string) (fs.FileMode, bool) {
		info, err := os.Lstat(p)
		if err != nil {
			return 0, false
		}
		return info.Mode().Type(), true
	}
	a.Path, a.To = from, to
	mode, there := look(from)
	a.Missing = !there
	if a.Op != answer.Make && a.Op != answer.Remove {
		a.Mode = mode
	}
	if to != "" {
		a.ToMode, a.ToExists = look(to)
	}
	return a
}

// attempt is a deed with its paths.
type attempt struct {
	deed
	from, to string
}

// compareActs asks about acts, does and compares them, up to the first that changed something.
// It returns how many were done.
func compareActs(t testing.TB, p *place, plan *enforce.Plan, all []attempt) int {
	t.Helper()
	args, acts := []string{}, []enforce.Act{}
	for _, x := range all { // only the last act may have changed something
		args, acts = append(args, x.name, x.from, x.to), append(acts, facts(x.op, x.from, x.to))
	}
	ws, out := run(t, plan, actCommand(self(t), p.in, "deeds", args))
	if ws.Signaled() || ws.ExitStatus() != 0 {
		t.Fatalf("%v: %s", ws, out)
	}
	done := strings.Fields(out)
	if n := len(done); n < len(all) && (n == 0 || done[n-1] != "0") {
		done = append(done, "0") // a program that replaced this one
	}
	for i, e := range done {
		n, err := strconv.Atoi(e)
		if err != nil {
			t.Fatalf("%q", out)
		}
		compareAct(t, p, plan, all[i], acts[i], syscall.Errno(n))
	}
	return len(done)
}

// compareAct compares the plan's answer with the kernel's.
func compareAct(t testing.TB, p *place, plan *enforce.Plan, x attempt, a enforce.Act, got syscall.Errno) {
	t.Helper()
	want := plan.Decide(a)
	name := ""
	if got != 0 {
		name = unix.ErrnoName(got)
	}
	what := fmt.Sprintf("%s %s %s: the kernel says %q, the plan %s %q by %q (%s)", x.name, x.from, x.to, name, want.Verdict, want.Errno, want.By, want.Reason)
	what = strings.ReplaceAll(what, p.dir, "…")
	switch {
	case got == unix.EACCES && x.name == "exec" && a.Mode.IsDir(), got == unix.EPERM && x.name == "link" && a.Mode.IsDir():
		// as everywhere
	case want.Verdict == enforce.Refused && natural(got) && got != 0:
		// the kernel first checks the kind of file
	case want.Verdict == enforce.Refused && want.Errno != name, want.Verdict == enforce.Allowed && !natural(got):
		t.Error(what)
	case want.Verdict == enforce.Refused && want.Reason == "":
		t.Error("no reason: " + what)
	case want.Verdict == answer.Undecided:
		t.Error("undecided: " + what)
	}
}

// decidePlace has a tree for each access, files in all of them, denials, protected files, and
// files without a rule.
func decidePlace(t testing.TB) *place {
	p := newPlace(t)
	t.Cleanup(func() { openAgain(p.dir) })
	for _, d := range []string{"ro", "rox", "noexec", "in/keys", "in/.git/hooks", "in/.git/objects", "in/.git/refs", "noexec/sub", "ro/sub"} {
		if err := os.MkdirAll(p.dir+"/"+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	os.Remove(p.in + "/file")
	for _, f := range []string{"in/file", "ro/file", "rox/file", "noexec/file", "noexec/sub/file", "ro/sub/file", "in/sub/file", "in/.env", "in/keys/id", "in/.git/config", "in/.git/HEAD", "in/.git/hooks/h", "in/sub/own"} {
		if err := os.WriteFile(p.dir+"/"+f, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.allow(t, policy.Read, p.dir+"/ro")
	p.allow(t, policy.Read|policy.Exec, p.dir+"/rox")
	p.allow(t, policy.Read|policy.Write, p.dir+"/noexec")
	p.allow(t, policy.Read|policy.Write, p.dir+"/ro/sub")
	p.deny(p.in + "/.env")
	p.deny(p.in + "/keys")
	return p
}

// openAgain undoes chmod(2), so that a test can remove what is in the directory.
func openAgain(dir string) {
	_ = filepath.WalkDir(dir, func(p string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return nil
	})
}

func decidePaths() []string {
	return []string{"in/file", "in/new", "in/sub", "in/sub/file", "in/.env", "in/keys", "in/keys/id", "in/keys/new", "in/.git/config", "in/.git/hooks/h", "in/.git/hooks/new",
		"in/.git/HEAD", "in/.git", "ro/file", "ro/new", "ro/sub/file", "ro/sub/new", "rox/file", "noexec/file", "noexec/new", "noexec/sub", "out/file", "out/new", "out"}
}

// decidePlans returns plans with and without mounts.
func decidePlans(t testing.TB, p *place) map[string]*enforce.Plan {
	caps := enforce.Probe()
	all := map[string]*enforce.Plan{}
	enforce.ProbeNamespaces(&caps)
	if caps.MountNS {
		all["mounts"] = enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
	}
	caps.MountNS, caps.MountReason = false, "left out by the test"
	all["rules"] = enforce.NewPlan(p.policy, caps, thisHost(), enforce.Options{})
	return all
}

// TestDecide does every act on every path and compares the plan's answer with the kernel's.
func TestDecide(t *testing.T) {
	needLandlock(t, 3)
	for _, which := range []string{"mounts", "rules"} {
		t.Run(which, func(t *testing.T) {
			t.Parallel()
			fresh := func() (*place, *enforce.Plan) {
				p := decidePlace(t)
				return p, decidePlans(t, p)[which]
			}
			if _, plan := fresh(); plan == nil {
				testkit.Lacks(t, testkit.UserNS, "no mount namespace")
			}
			all := everyAct()
			for len(all) > 0 && !t.Failed() {
				p, plan := fresh()
				batch := []attempt{}
				for _, x := range all {
					x.from = p.dir + "/" + x.from
					if x.to != "" {
						x.to = p.dir + "/" + x.to
					}
					batch = append(batch, x)
				}
				all = all[compareActs(t, p, plan, batch[:min(len(batch), 200)]):]
			}
		})
	}
}

// everyAct returns every act on every path.
func everyAct() (all []attempt) {
	for _, d := range deeds() {
		for _, from := range decidePaths() {
			if !d.two {
				all = append(all, attempt{d, from, ""})
				continue
			}
			for _, to := range []string{"in/moved", "in/sub/moved", "in/sub/own", "in/.git/moved", "in/.git/config", "in/.env", "noexec/moved", "ro/moved", "ro/sub/moved", "out/moved"} {
				all = append(all, attempt{d, from, to})
			}
		}
	}
	return all
}
