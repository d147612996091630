package attack_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// deny adds a denial, in the resolver's form.
func (p *place) deny(pattern string) {
	p.policy.Deny = append(p.policy.Deny, resolve.DenyPath{
		Pattern: pattern, Glob: strings.ContainsAny(pattern, "*?["),
		Deny: policy.Named{Value: pattern, Origin: policy.Origin{Source: "test"}},
	})
}

// write makes a file and the directories above it.
func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// needMounts skips a test if no mount namespace can be made, which it finds out by making one.
func needMounts(t *testing.T) {
	t.Helper()
	needLandlock(t, 1)
	caps := enforce.Probe()
	enforce.ProbeNamespaces(&caps)
	if !caps.MountNS {
		testkit.Lacks(t, testkit.UserNS, caps.MountReason)
	}
}

// mountPlan returns the plan for the place's policy with all that this machine has.
func (p *place) mountPlan() *enforce.Plan {
	return enforce.NewPlan(p.policy, enforce.Probe(), thisHost(), enforce.Options{})
}

// breach is a shell line in the writable tree that must work without the plan and fail with it.
// Its exit status says whether it worked.
type breach struct{ name, script string }

// breachAll tries each breach on a separate place: without the plan, with it, and with it in a layer.
//
// What only root may do has no control as an ordinary user, but it is tried all the same.
func breachAll(t *testing.T, make func(t *testing.T) *place, attacks []breach, rootOnly ...string) {
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			free := make(t)
			if !slices.Contains(rootOnly, a.name) {
				status, out := free.sh(t, nil, a.script)
				testkit.NeedShell(t, status, out)
				if status != 0 {
					t.Fatalf("control: exit status %d: %s", status, out)
				}
			}
			for _, planned := range []func(p *place) *enforce.Plan{
				func(p *place) *enforce.Plan { return p.mountPlan() },
				func(p *place) *enforce.Plan { return p.tryPlan(t) },
			} {
				p := make(t)
				plan := planned(p)
				if err := plan.Err(nil, false); err != nil {
					t.Fatal(err)
				}
				if plan.Mounts == nil {
					t.Fatal("no mounts are planned")
				}
				if status, out := p.sh(t, plan, a.script); status == 0 {
					t.Errorf("it worked (layers: %v): %s", len(plan.Mounts.Overlays) > 0, out)
				}
			}
		})
	}
}

func denyPlace(t *testing.T) *place {
	p := newPlace(t)
	write(t, p.in+"/.env", "KEY=secret\n")
	write(t, p.in+"/sub/deep/.env", "KEY=secret\n")
	write(t, p.in+"/keys/id", "secret\n")
	write(t, p.in+"/keys/more/id", "secret\n")
	write(t, p.in+"/other/id", "secret\n")
	p.deny(p.in + "/**/.env")
	p.deny(p.in + "/keys")
	p.deny(p.in + "/other")
	return p
}

func TestDenyInsideWritable(t *testing.T) {
	needMounts(t)
	breachAll(t, denyPlace, []breach{
		{"read", `cat .env`},
		{"read deep", `cat sub/deep/.env`},
		{"read by the absolute path", `cat "$PWD/.env"`},
		{"read through /proc/self/cwd", `cat /proc/self/cwd/.env`},
		{"read through /proc/self/root", `cat "/proc/self/root$PWD/.env"`},
		{"read through ..", `cd sub && cat ../.env`},
		{"append", `echo x >>.env`},
		{"truncate", `: >.env`},
		{"remove", `rm -f .env && ! test -e .env`},
		{"rename", `mv .env moved && cat moved`},
		{"rename over", `echo mine >new && mv -f new .env && grep mine .env`},
		{"hard link", `ln .env linked && cat linked`},
		{"symbolic link", `ln -s .env linked && cat linked`},
		{"copy", `cp .env copied`},
		{"chmod", `chmod 644 .env && cat .env`},
		{"rename its directory", `mv sub sub2 && cat sub2/deep/.env`},
		{"rename the directory above", `mv sub/deep sub/d2 && cat sub/d2/.env`},
		{"bind over", `unshare -rm sh -c 'mount --bind sub/deep sub && cat sub/.env'`},
		{"unmount", `unshare -rm sh -c 'umount .env; umount -l .env; grep -q KEY .env'`},
		{"list a directory", `ls keys | grep id`},
		{"read in a directory", `cat keys/id`},
		{"read deep in a directory", `cat keys/more/id`},
		{"read in another directory", `cat other/id`},
		{"make in a directory", `echo x >keys/new`},
		{"make a directory", `mkdir keys/new`},
		{"rename a directory", `mv keys keys2 && cat keys2/id`},
		{"remove a directory", `rm -rf keys && ! test -e keys`},
		{"chmod a directory", `chmod 755 keys && ls keys | grep id`},
		{"execute", `cp /bin/true keys/t && keys/t`},
	})
}

func TestDenyWorksBeside(t *testing.T) {
	needMounts(t)
	p := denyPlace(t)
	plan := p.mountPlan()
	for _, script := range []string{
		`echo x >new && cat new && rm new`,
		`mkdir d && mv file d/ && mv d/file . && rmdir d`,
		`ls -la >/dev/null && ls sub/deep`,
		`ln file sub/linked && cat sub/linked`,
		`echo x >sub/deep/other && chmod 600 sub/deep/other && touch -d 1970-01-01 sub/deep/other`,
		`test "$(grep CapEff /proc/self/status)" = "$(grep CapEff /proc/self/status)" && id >/dev/null`,
		`test -e .env`,
	} {
		if status, out := p.sh(t, plan, script); status != 0 {
			t.Errorf("%s: exit status %d: %s", script, status, out)
		}
	}
	for _, f := range []string{"/.env", "/keys/id", "/other/id"} {
		if b, err := os.ReadFile(p.in + f); err != nil || !strings.Contains(string(b), "secret") {
			t.Errorf("%s contains %q outside, %v", f, b, err)
		}
	}
}

// TestNoCapabilities: an ordinary user's command has no capabilities in its own namespace.
func TestNoCapabilities(t *testing.T) {
	needMounts(t)
	if os.Geteuid() == 0 {
		t.Skip("root keeps some")
	}
	p := denyPlace(t)
	if _, out := p.sh(t, p.mountPlan(), `grep -E '^Cap(Inh|Prm|Eff|Amb)' /proc/self/status | grep -v 0000000000000000`); out != "" {
		t.Error(out)
	}
}

// TestFileCapabilities: a program with file capabilities gives it none either. The maker of a
// user namespace has all, and exec keeps those that the file names.
func TestFileCapabilities(t *testing.T) {
	needMounts(t)
	if os.Geteuid() == 0 {
		t.Skip("root needs no user namespace")
	}
	const ping = "/usr/bin/ping"
	testkit.NeedProgram(t, ping)
	if n, err := unix.Getxattr(ping, "security.capability", nil); err != nil || n <= 0 {
		t.Skip("ping has no capabilities here")
	}
	p := newPlace(t)
	p.allow(t, policy.Read|policy.Exec, "/usr")
	var status []byte
	read := func() (err error) {
		proc, err := startUnder(p.mountPlan(), &fork.Command{Path: ping, Args: []string{"ping", "-c", "3", "127.0.0.1"}, Dir: p.in})
		if err != nil {
			t.Fatal(err)
		}
		defer proc.Close()
		defer proc.Kill()
		status, err = os.ReadFile(fmt.Sprintf("/proc/%d/status", proc.Pid))
		return err
	}
	// Without the capability it may end before that.
	testkit.Eventually(t, "the status can be read", func() bool { return read() == nil })
	if !strings.Contains(string(status), "CapPrm:\t0000000000000000\n") {
		t.Errorf("it has capabilities:\n%s", status)
	}
}

// TestMetadataOutside: metadata outside can't be changed, even if nothing is denied or
// protected.
func TestMetadataOutside(t *testing.T) {
	needMounts(t)
	breachAll(t, func(t *testing.T) *place { return newPlace(t) }, []breach{
		{"chmod", `chmod 600 "$OUT/file"`},
		{"chmod of a directory", `chmod 700 "$OUT"`},
		{"times", `touch -d 1970-01-01 "$OUT/file"`},
		{"owner", `chown "$(id -u):$(id -g)" "$OUT/file"`},
		{"extended attributes", `e=$(python3 -c 'import os,sys; os.setxattr(sys.argv[1], "user.x", b"1")' "$OUT/file" 2>&1) && exit
			echo "$e"; case $e in *"not supported"*|*"not found"*) exit 127; esac; exit 1`},
		{"flags", `chattr +d "$OUT/file"`},
	})
}

// TestOwners: chown(2) to another user fails as outside, even in a user namespace, and what an
// ordinary user may do works.
func TestOwners(t *testing.T) {
	needMounts(t)
	if os.Geteuid() == 0 {
		t.Skip("root may")
	}
	for _, c := range []struct{ script, says string }{
		{"chown 0 file", "Operation not permitted"},
		{"chown -h :0 file", "Operation not permitted"},
		{`chown "$(id -u):$(id -g)" file && chgrp "$(id -g)" file`, ""},
		{"cp -p file copy && cp -a /etc/passwd . && test -O passwd", ""},
	} {
		p := newPlace(t)
		want, out := p.sh(t, nil, c.script)
		if !strings.Contains(out, c.says) {
			t.Fatalf("control: %s: exit status %d: %s", c.script, want, out)
		}
		if status, out := p.sh(t, p.mountPlan(), c.script); status != want || !strings.Contains(out, c.says) {
			t.Errorf("%s: exit status %d, without %d: %s", c.script, status, want, out)
		}
	}
}

func TestMetadataInside(t *testing.T) {
	needMounts(t)
	p := denyPlace(t)
	plan := p.mountPlan()
	for _, script := range []string{
		`chmod 600 file && touch -d 1970-01-01 file && chmod 700 sub`,
		`echo x >/dev/null`,
		`: </dev/zero`,
	} {
		if status, out := p.sh(t, plan, script); status != 0 && !strings.Contains(script, "zero") {
			t.Errorf("%s: exit status %d: %s", script, status, out)
		}
	}
}

func TestDirectoryAsDescriptor(t *testing.T) {
	needMounts(t)
	p := denyPlace(t)
	dir, err := os.Open(p.in)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	c := command(p, "true")
	c.Files = []*os.File{dir}
	if _, err := startUnder(p.mountPlan(), c); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("got %v, want a refusal", err)
	}
}

// command returns a command that runs a shell line in the place.
func command(p *place, script string) *fork.Command {
	return &fork.Command{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: p.in, Env: []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin"}}
}
