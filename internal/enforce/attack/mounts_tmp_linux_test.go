package attack_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// elsewhere is a new directory that is not below /tmp.
func elsewhere(t *testing.T) string {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp(home, ".zsbx-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	dir, err = filepath.EvalSymlinks(dir)
	if err != nil || host.Within(dir, "/tmp") || host.Within(dir, "/var/tmp") {
		t.Skipf("%s is in a directory for temporary files", dir)
	}
	return dir
}

// tmpPlace returns a place whose tree is not below /tmp, with a temporary directory that is.
func tmpPlace(t *testing.T) *place {
	t.Helper()
	t.Setenv("TMPDIR", elsewhere(t))
	p := newPlace(t)
	p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == self(t) })
	temp, err := os.MkdirTemp("/tmp", "zsbx-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(temp) })
	p.allow(t, policy.Read|policy.Write|policy.Exec, temp)
	p.policy.TempDir = temp
	return p
}

// TestTmp: /tmp and /var/tmp are private. Files outside can't be seen there, by any name.
func TestTmp(t *testing.T) {
	needMounts(t)
	p := tmpPlace(t)
	plan := p.mountsPlan(t, enforce.Options{})
	for _, dir := range []string{"/tmp", "/var/tmp"} {
		secret, err := os.MkdirTemp(dir, "zsbx-test-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(secret)
		file := secret + "/file"
		if err := os.WriteFile(file, []byte("secret\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, script := range []string{
			"cat " + file,
			"test -e " + secret,
			"ls " + dir + " | grep -q " + filepath.Base(secret),
			"cat /proc/self/root" + file,
			"cat /proc/$$/root/" + file,
			"cd /proc/self/root" + secret,
			"echo x >>" + file,
			"cat " + p.policy.TempDir + "/../.." + file,
			"ln " + file + " " + dir + "/again",
			"rm " + file + " && echo secret >" + file, // the last, for the control
		} {
			if status, out := p.sh(t, plan, script); status == 0 {
				t.Errorf("%s: it worked: %s", script, out)
			}
			if status, out := p.sh(t, nil, script); status != 0 {
				t.Errorf("control: %s: exit status %d: %s", script, status, out)
			}
			os.Remove(dir + "/again")
		}
		inside := filepath.Base(secret) + "-inside"
		works := "cd " + dir + ` && echo mine >a && cat a && mkdir -p d/e && mv a d/e && ln -s d l && cat l/e/a && ln d/e/a ` + inside + ` &&
			mkfifo f && chmod 4755 d/e/a && test "$(stat -c %a .)" = 1777 && mktemp -p . && cp /bin/sh big && rm -r d big`
		if status, out := p.sh(t, plan, works); status != 0 {
			t.Errorf("exit status %d: %s", status, out)
		}
		if _, err := os.Lstat(filepath.Join(dir, inside)); err == nil {
			t.Errorf("it was made in %s outside", dir)
		}
	}
	if status, out := p.sh(t, plan, "echo mine >/tmp/a && test ! -e /var/tmp/a && mv /tmp/a /var/tmp/a && cat /var/tmp/a"); status != 0 || out != "mine" {
		t.Errorf("from one to the other: exit status %d: %s", status, out)
	}
}

// TestTmpLinks: a link in another directory leads to the private /tmp, even if the broker
// connects to a socket there for the command. It reveals nothing about the real /tmp.
func TestTmpLinks(t *testing.T) {
	needMounts(t)
	p := tmpPlace(t)
	dir, err := os.MkdirTemp("/tmp", "zsbx-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	exe, plan := p.in+"/act", p.mountsPlan(t, enforce.Options{})
	if status, out := p.sh(t, nil, "cp "+self(t)+" act"); status != 0 { // the test binary may be in /tmp
		t.Fatal(out)
	}
	try := func(plan *enforce.Plan, args ...string) syscall.Errno {
		ws, _ := run(t, plan, actCommand(exe, p.in, "through-link", args))
		return syscall.Errno(ws.ExitStatus())
	}
	for _, c := range []struct {
		whose, path   string
		outside, want syscall.Errno
	}{
		{"other", dir, syscall.ECONNREFUSED, syscall.ENOENT},
		{"other", dir + "/none", syscall.ENOENT, syscall.ENOENT},
		{"direct", "/proc/self/../.." + dir, syscall.ECONNREFUSED, syscall.ENOENT},
		{"direct", "/dev/fd/../../.." + dir, syscall.ECONNREFUSED, syscall.ENOENT},
		{"own", "/tmp/zsbx-test-own", 0, 0},
	} {
		if got := try(nil, c.whose, c.path); got != c.outside {
			t.Errorf("control: %s: %v, want %v", c.path, got, c.outside)
		}
		_ = os.Remove("/tmp/zsbx-test-own")
		if got := try(plan, c.whose, c.path); got != c.want {
			t.Errorf("%s: %v, want %v", c.path, got, c.want)
		}
	}
}

// TestTmpDirStays: the temporary directory is the same inside and outside.
func TestTmpDirStays(t *testing.T) {
	needMounts(t)
	p := tmpPlace(t)
	temp := p.policy.TempDir
	script := fmt.Sprintf(`echo kept >%[1]s/file && cp /bin/true %[1]s/prog && %[1]s/prog && stat -f -c %%T %[1]s && stat -c %%d:%%i %[1]s`, temp)
	status, out := p.sh(t, p.mountsPlan(t, enforce.Options{}), script)
	var st syscall.Stat_t
	if err := syscall.Stat(temp, &st); err != nil || status != 0 || !strings.HasSuffix(out, fmt.Sprintf("%d:%d", st.Dev, st.Ino)) {
		t.Errorf("%v, exit status %d: %s", err, status, out)
	}
	if b, err := os.ReadFile(temp + "/file"); err != nil || string(b) != "kept\n" {
		t.Errorf("outside: %q, %v", b, err)
	}
}

// TestTmpBounds: the private /tmp is full at its size, and allows what the real one allows.
func TestTmpBounds(t *testing.T) {
	needMounts(t)
	p := tmpPlace(t)
	plan := p.mountsPlan(t, enforce.Options{})
	for _, c := range []struct{ what, script string }{
		{"the size", `test "$(($(stat -f -c '%b * %S' /tmp)))" -le "$(($(sed -n 's/MemTotal: *//p' /proc/meminfo | tr -d ' kB') * 1024 / 4 + 4096))"`},
		{"set-user-ID", `grep ' /tmp ' /proc/self/mountinfo | tail -1 | grep -q nosuid`},
		{"devices", `grep ' /tmp ' /proc/self/mountinfo | tail -1 | grep -q nodev`},
		{"no node is made", `! mknod /tmp/null c 1 3 2>/dev/null`},
	} {
		if status, out := p.sh(t, plan, c.script); status != 0 {
			t.Errorf("%s: exit status %d: %s", c.what, status, out)
		}
	}
}

// TestTmpNothingOpens draws rules and denials in directories for temporary files and elsewhere.
// What no rule allows is closed as without a private /tmp, although Landlock's rights are
// inherited through mount points.
func TestTmpNothingOpens(t *testing.T) {
	private, rounds := 0, 0
	nothingOpens(t, 16, 13, policy.Private{}, func(t *testing.T, plan *enforce.Plan) {
		rounds++
		if plan.Mounts != nil && slices.ContainsFunc(plan.Mounts.Private, func(d mounts.PrivateDir) bool { return strings.HasSuffix(d.Path, "/tmp") }) {
			private++
		}
	})
	if private == 0 || private == rounds && !testing.Short() {
		t.Errorf("%d of %d had a private directory: nothing is compared", private, rounds)
	}
}

// nothingOpens draws rules and denials, and compares what a shell can do under their plan with
// the policy.
func nothingOpens(t *testing.T, rounds, stream uint64, own policy.Private, look func(*testing.T, *enforce.Plan)) {
	needMounts(t)
	if testing.Short() {
		rounds = 5
	}
	var looking sync.Mutex
	t.Run("drawn", func(t *testing.T) {
		for seed := range rounds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				d := drawClosed(t, rand.New(rand.NewPCG(seed, stream)), own)
				plan := enforce.NewPlan(d.policy, enforce.Probe(), thisHost(), enforce.Options{})
				looking.Lock()
				look(t, plan)
				looking.Unlock()
				d.check(t, plan)
			})
		}
	})
}

// closed is a tree with rules and denials, and its files.
type closed struct {
	policy *resolve.Resolved
	dirs   []string
	files  []string
}

// drawClosed makes trees below /tmp, /var/tmp and elsewhere, and a policy that
// allows some of them.
func drawClosed(t *testing.T, r *rand.Rand, private policy.Private) *closed {
	t.Helper()
	var d closed
	for _, top := range []string{"/tmp", "/var/tmp", elsewhere(t)} {
		dir, err := os.MkdirTemp(top, "zsbx-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		for _, sub := range []string{"a", "a/b", "c"} {
			sub := dir + "/" + sub
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			d.dirs = append(d.dirs, sub)
			for _, name := range []string{"x", ".env"} {
				if err := os.WriteFile(sub+"/"+name, []byte("#!/bin/sh\necho ran\n"), 0o755); err != nil {
					t.Fatal(err)
				}
				d.files = append(d.files, sub+"/"+name)
			}
		}
	}
	pick := func(l []string) string { return l[r.IntN(len(l))] }
	// Every second draw leaves /tmp or /var/tmp alone, or both.
	allowed := d.dirs
	switch r.IntN(4) {
	case 0:
		allowed = d.dirs[6:]
	case 1:
		allowed = d.dirs[3:]
	}
	h, err := host.HostIn(pick(allowed))
	if err != nil {
		t.Fatal(err)
	}
	h.TempDir, err = os.MkdirTemp("/tmp", "zsbx-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(h.TempDir) })
	h.Home = "/nonexistent"
	if private.Home.Is() {
		h.Home = filepath.Dir(d.dirs[len(d.dirs)-1])
	}
	asks := &policy.Policy{Private: private}
	for range 1 + r.IntN(3) {
		access := []policy.Access{policy.Read, policy.Read | policy.Exec, policy.Read | policy.Write, policy.Read | policy.Write | policy.Exec}[r.IntN(4)]
		asks.FS.Rules = append(asks.FS.Rules, policy.Rule{Path: pick(allowed), Access: access, Origin: policy.Origin{Source: "--test"}})
	}
	for range r.IntN(3) {
		asks.FS.Deny = append(asks.FS.Deny, policy.Named{Value: pick(append([]string{"**/.env"}, d.files...)), Origin: policy.Origin{Source: "--deny"}})
	}
	d.policy, err = resolve.Policy(policy.Merge(policy.Baseline("linux"), asks), h)
	if err != nil {
		t.Fatal(err)
	}
	return &d
}

// check lets a confined shell try all files, and compares the result with the policy.
func (d *closed) check(t *testing.T, plan *enforce.Plan) {
	t.Helper()
	p := &place{in: d.policy.Dir}
	const script = `for f in %s; do
		(cat "$f" | grep -q ran) 2>/dev/null && echo "read $f"
		(: >>"$f") 2>/dev/null && test -s "$f" && echo "write $f"
		"$f" 2>/dev/null | grep -q ran && echo "exec $f"
	done; true`
	cmd := fmt.Sprintf(script, strings.Join(d.files, " "))
	var free string
	testkit.Within(testkit.Patience, func() bool { // a child of another test may still have a new file open for writing (ETXTBSY)
		_, free = p.sh(t, nil, cmd)
		return len(strings.Fields(free)) == 2*3*len(d.files)
	})
	_, got := p.sh(t, plan, cmd)
	did := strings.Split(got, "\n")
	for _, f := range d.files {
		for act, access := range map[string]policy.Access{"read": policy.Read, "write": policy.Write, "exec": policy.Read | policy.Exec} {
			line := act + " " + f
			if !strings.Contains(free, line) {
				t.Errorf("control: %s: %s", line, free)
			}
			allowed := d.policy.Allowed(f, access).Allowed
			worked := slices.Contains(did, line)
			asked := enforce.Act{Op: enforce.ActOpen, Flags: enforce.ActRead, Path: f, Inside: true}
			if act == "exec" {
				asked.Op = enforce.ActExec
			}
			if answer := plan.Decide(asked); act != "write" && (answer.Verdict == enforce.Refused) == worked {
				t.Errorf("%s: %v, and the plan says %+v", line, worked, answer)
			}
			if worked != allowed {
				t.Errorf("%s: %v, allowed %v\nrules %v\ndenied %v\nin %s", line, worked, allowed, d.policy.Paths[len(d.policy.Paths)-4:], d.policy.Deny, d.policy.Dir)
			}
		}
	}
}
