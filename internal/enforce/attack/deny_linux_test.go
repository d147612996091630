package attack_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// shut returns the machine as seen by a user who can't read some directories. Their owner could
// after chmod(2). Root always can, so a test has to simulate it.
func shut(dirs ...string) *host.Host {
	h := thisHost()
	readDir, lstat := h.ReadDir, h.Lstat
	h.ReadDir = func(p string, n int) ([]fs.DirEntry, error) {
		for _, d := range dirs {
			if p == d {
				return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrPermission}
			}
		}
		return readDir(p, n)
	}
	h.Lstat = func(p string) (host.Stat, error) {
		for _, d := range dirs {
			if strings.HasPrefix(p, d+"/") {
				return host.Stat{}, &fs.PathError{Op: "lstat", Path: p, Err: fs.ErrPermission}
			}
		}
		return lstat(p)
	}
	return h
}

// TestDenyShut: a directory that zsbx can't read may contain denied files, so all of it is
// denied, in read-only and in writable trees.
func TestDenyShut(t *testing.T) {
	needLandlock(t, 1)
	for name, access := range map[string]policy.Access{"ro": policy.Read, "rw": policy.Read | policy.Write} {
		for _, pattern := range []string{"/**/.env", "/shut/deep/.env"} {
			t.Run(name+pattern, func(t *testing.T) {
				if name == "rw" {
					needMounts(t)
				}
				p := newPlace(t)
				write(t, p.in+"/shut/deep/.env", "secret\n")
				write(t, p.in+"/shut/.env", "secret\n")
				p.policy.Paths = p.policy.Paths[:len(p.policy.Paths)-1] // in
				p.allow(t, access, p.in)
				p.deny(p.in + pattern)
				caps := enforce.Probe()
				caps.MountNS = caps.MountNS && name == "rw"
				plan := enforce.NewPlan(p.policy, caps, shut(p.in+"/shut", p.in+"/shut/deep"), enforce.Options{})
				if err := plan.Err(nil, false); err != nil {
					t.Fatal(err)
				}
				for _, script := range []string{`cat shut/deep/.env`, `chmod 700 shut 2>/dev/null; cat shut/deep/.env`} {
					if status, out := p.sh(t, nil, script); status != 0 {
						t.Fatalf("control: %s: exit status %d: %s", script, status, out)
					}
					if status, out := p.sh(t, plan, script); status == 0 {
						t.Errorf("%s: it worked: %s", script, out)
					}
				}
				if status, out := p.sh(t, plan, `cat file && ls .`); status != 0 {
					t.Errorf("beside it: exit status %d: %s", status, out)
				}
			})
		}
	}
}

// TestDenyLater: what happens to a file that matches a denied glob and is made after the start,
// by the command in a writable tree or by a program outside.
func TestDenyLater(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	write(t, p.in+"/had/.env", "secret\n")
	write(t, p.in+"/none/file", "x\n")
	ro := p.dir + "/ro"
	write(t, ro+"/had/.env", "secret\n")
	write(t, ro+"/none/file", "x\n")
	p.allow(t, policy.Read, ro)
	p.deny(p.in + "/**/.env")
	p.deny(ro + "/**/.env")
	plan := p.mountPlan()
	before := plan.Snapshot(thisHost())
	for _, d := range []string{"/had/new", "/none/new"} {
		if err := os.MkdirAll(ro+d, 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, ro+d+"/.env", "secret\n")
	}
	write(t, ro+"/none/.env", "secret\n")
	for _, c := range []struct {
		script string
		works  bool
	}{
		{`cat had/.env`, false},
		{`cat ../ro/had/.env`, false},
		{`echo own >none/.env && cat none/.env`, true}, // its own
		{`cat ../ro/had/new/.env`, false},              // a new directory in one that was split
		{`cat ../ro/none/.env`, true},                  // a directory that contained nothing denied
		{`cat ../ro/none/new/.env`, true},
		{`echo x >../ro/none/.env`, false},
	} {
		if status, out := p.sh(t, nil, c.script); status != 0 {
			t.Fatalf("control: %s: exit status %d: %s", c.script, status, out)
		}
		if err := os.RemoveAll(p.in + "/none/.env"); err != nil {
			t.Fatal(err)
		}
		if status, out := p.sh(t, plan, c.script); (status == 0) != c.works {
			t.Errorf("%s: exit status %d: %s", c.script, status, out)
		}
		if c.script == `echo own >none/.env && cat none/.env` {
			if ch := before.Changes(); len(ch) != 1 || ch[0].Path != p.in+"/none/.env" || !ch[0].New {
				t.Errorf("reported: %v", ch)
			}
		}
	}
}

// TestDenyLinked: a denied file's other name (hard link) does not open the denied name. If a
// rule names it, it is closed itself. In a directory that is allowed whole it is open, as
// docs/security.md says.
func TestDenyLinked(t *testing.T) {
	needMounts(t)
	for _, c := range []struct {
		name, script string
		allow        string // the rule that opens the other name
		works        bool
	}{
		{"the denied name", `cat ../closed/file`, "other/name", false},
		{"the other name", `cat ../other/name`, "other/name", false},
		{"the other name in a directory", `cat ../other/name`, "other", true},
		{"the denied name beside a directory", `cat ../closed/file`, "other", false},
		{"the other name in the denied one's directory", `cat ../closed/name`, "closed", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlace(t)
			write(t, p.dir+"/closed/file", "secret\n")
			write(t, p.dir+"/other/beside", "")
			for _, name := range []string{"/closed/name", "/other/name"} {
				if err := os.Link(p.dir+"/closed/file", p.dir+name); err != nil {
					t.Fatal(err)
				}
			}
			p.deny(p.dir + "/closed/file")
			p.allow(t, policy.Read, p.dir+"/"+c.allow)
			if status, out := p.sh(t, nil, c.script); status != 0 {
				t.Fatalf("control: exit status %d: %s", status, out)
			}
			if status, out := p.sh(t, p.mountPlan(), c.script); (status == 0) != c.works {
				t.Errorf("exit status %d: %s", status, out)
			}
		})
	}
}

// TestDenyGlobLink: if a glob matches a symbolic link, its target is closed by both names, in
// any tree. The controls: without a plan the target can be read, and with the plan the file
// beside it.
func TestDenyGlobLink(t *testing.T) {
	needLandlock(t, 1)
	for _, writable := range []bool{false, true} {
		p := newPlace(t)
		for _, name := range []string{p.out + "/a/shared", p.out + "/a/free", p.out + "/b/dir/key", p.out + "/c/far", p.out + "/c/free"} {
			write(t, name, "TOKEN\n")
		}
		for name, to := range map[string]string{"/a/.env": "shared", "/b/.env": "dir", "/b/more.env": "../c/far", "/b/loop.env": "loop.env", "/b/gone.env": "gone"} {
			if err := os.Symlink(to, p.out+name); err != nil {
				t.Fatal(err)
			}
		}
		plan := p.plan
		p.allow(t, policy.Read, p.out+"/c") // before the tree of the link
		for _, tree := range []string{"/a", "/b"} {
			access := policy.Read
			if writable {
				needMounts(t)
				access, plan = access|policy.Write, p.mountPlan
			}
			p.allow(t, access, p.out+tree)
		}
		p.deny(p.out + "/**/*.env")
		for _, file := range []string{"a/.env", "a/shared", "b/.env/key", "b/dir/key", "b/more.env", "c/far"} {
			if status, out := p.sh(t, nil, "cat $OUT/"+file); status != 0 {
				t.Fatalf("control: %s: %s", file, out)
			}
			if status, _ := p.sh(t, plan(), "cat $OUT/"+file); status == 0 {
				t.Errorf("writable %v: %s was read", writable, file)
			}
		}
		if status, out := p.sh(t, plan(), "cat $OUT/a/free $OUT/c/free"); status != 0 {
			t.Errorf("writable %v: beside it: %s", writable, out)
		}
	}
}
