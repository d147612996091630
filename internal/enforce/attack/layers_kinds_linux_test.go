package attack_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// TestLayerTemp: the session's temporary directory has no layer, even in a tree that has one.
func TestLayerTemp(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	p.policy.TempDir = p.in + "/temp"
	write(t, p.policy.TempDir+"/.env", "denied\n")
	p.allow(t, policy.Read|policy.Write|policy.Exec, p.policy.TempDir)
	p.deny(p.in + "/**/.env")
	script := `echo x >temp/new && mkdir temp/d && mv temp/d temp/e && echo x >new && ! cat temp/.env 2>&1`
	if status, out := p.sh(t, p.tryPlan(t), script); status != 0 || strings.Contains(out, "denied\n") {
		t.Errorf("status %d: %s", status, out)
	}
	if _, err := os.Stat(p.policy.TempDir + "/e"); err != nil {
		t.Error("a directory is not in the temporary directory: ", err)
	}
	if _, err := os.Stat(p.layer() + "/temp"); err == nil {
		t.Error("the layer has the temporary directory")
	}
	if _, err := os.Stat(p.layer() + "/new"); err != nil {
		t.Error("control: what is beside it is not in the layer: ", err)
	}
}

// TestLayerHome: layers together with a private home directory and private process ids.
func TestLayerHome(t *testing.T) {
	needMounts(t)
	p, home := homePlace(t)
	p.policy.Private.Pids = private
	p.deny(p.in + "/sub")
	plan := p.tryPlan(t)
	if homeOf(plan) == nil || !plan.Mounts.Pids || len(plan.Layered()) == 0 {
		t.Fatalf("not all is planned: %+v", plan.Mounts)
	}
	script := strings.ReplaceAll(`cat file && echo x >>file && echo x >new && echo x >$H/new && ! touch sub/x && ! cat $H/.netrc`, "$H", home)
	if status, out := p.sh(t, plan, script); status != 0 {
		t.Errorf("status %d: %s", status, out)
	}
	for _, name := range []string{p.in + "/new", home + "/new", p.layer() + "/sub"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s was made", name)
		}
	}
	if _, err := os.Lstat(p.layer() + "/new"); err != nil {
		t.Error(err)
	}
}

// TestLayerOnMounts makes layers of trees that are file systems. What can't be executed outside can't be
// inside.
func TestLayerOnMounts(t *testing.T) {
	needMounts(t)
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	for _, c := range []struct {
		name   string
		kind   string
		flags  uintptr
		script string
	}{
		{"tmpfs", "tmpfs", 0, `./run && cat link && echo x >new`},
		{"noexec", "tmpfs", unix.MS_NOEXEC, `echo x >new && cat link && cp /bin/true t && ! ./run && ! ./t`},
		{"no links", "tmpfs", unix.MS_NOSYMFOLLOW, `./run && ln -s run other && ! cat link && ! cat other`},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			if err := unix.Mount("none", p.in, c.kind, 0, ""); err != nil {
				testkit.Lacks(t, testkit.UserNS, "no mount: ", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(p.in, unix.MNT_DETACH) })
			write(t, p.in+"/run", "#!/bin/sh\n")
			if err := os.Chmod(p.in+"/run", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("run", p.in+"/link"); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mount("", p.in, "", c.flags|unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
				t.Fatal(err)
			}
			p.policy.Paths = slices.DeleteFunc(p.policy.Paths, func(r resolve.Path) bool { return r.Path == p.in })
			p.allow(t, policy.Read|policy.Write|policy.Exec, p.in)
			if status, out := p.sh(t, p.mountPlan(), c.script+` && rm -f t new other`); status != 0 {
				t.Fatalf("control: status %d: %s", status, out)
			}
			p.policy.Writes.Value = "try"
			if status, out := p.sh(t, p.tryPlan(t), c.script); status != 0 {
				t.Errorf("status %d: %s", status, out)
			}
		})
	}
}

// TestLayerAgain: a tree that may be written by another path, too, has no layer. The control: one that may
// only be read there is not changed.
func TestLayerAgain(t *testing.T) {
	needMounts(t)
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	p := newPlace(t)
	other := p.dir + "/other"
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(p.in+"/sub", other, "", unix.MS_BIND, ""); err != nil {
		testkit.Lacks(t, testkit.UserNS, "no mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(other, unix.MNT_DETACH) })
	p.allow(t, policy.Read, other)
	if status, out := p.sh(t, p.tryPlan(t), `echo x >sub/new && ! echo x >"$OUT/../other/new"`); status != 0 {
		t.Fatalf("control: status %d: %s", status, out)
	}
	p.allow(t, policy.Read|policy.Write, other)
	plan := p.tryPlan(t)
	if err := plan.Err(nil, false); err == nil || !strings.Contains(err.Error(), "through another mount") {
		t.Errorf("the gap says %v, and %d layers are planned", err, len(plan.Layered()))
	}
}

// TestLayerManyCovers closes more files in a layer than a step's reference to an earlier one could
// count when it had 16 bits.
func TestLayerManyCovers(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	for i := range 8000 {
		file := p.in + "/sub/" + strconv.Itoa(i) + ".env"
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.deny(p.in + "/sub/*.env")
	if status, out := p.sh(t, p.tryPlan(t), `echo x >new && ! cat sub/0.env && ! cat sub/7999.env`); status != 0 {
		t.Errorf("status %d: %s", status, out)
	}
}
