package enforce

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/policy"
)

// macAct is a script, and whether a confined command may do it. As a control it first runs
// unconfined.
type macAct struct {
	name, script string
	inside       bool
}

// 12 and the promises about files: what a policy allows and refuses, with
// names that profiles were broken with.
func TestMacFiles(t *testing.T) {
	requireSeatbelt(t)
	for _, name := range []string{"plain", "with space", `quote " and \`, "(paren) ; x", "u\u0308ni", "\u00fcni", "\u202e"} {
		top := tempDir(t)
		dir, out := filepath.Join(top, name), filepath.Join(top, "outside")
		for _, d := range []string{filepath.Join(dir, "sub"), filepath.Join(dir, ".git/objects"), filepath.Join(dir, ".git/refs"), out} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		for _, f := range []string{dir + "/.env", dir + "/file", dir + "/.git/HEAD", dir + "/.git/config", out + "/secret"} {
			if err := os.WriteFile(f, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		plan := macPlan(t, dir, policy.Policy{FS: policy.FS{
			Rules: []policy.Rule{{Path: dir, Access: policy.Read | policy.Write | policy.Exec, Origin: policy.Origin{Source: "--rw"}}},
			Deny:  []policy.Named{{Value: "**/.env", Origin: policy.Origin{Source: "--deny"}}},
		}})
		for _, a := range []macAct{
			{"read inside", `cat file`, true},
			{"write inside", `echo y >sub/new && rm sub/new && mkdir d && mv d e && rmdir e`, true},
			{"execute inside", `printf '#!/bin/sh\nexit 0\n' >x && chmod +x x && ./x`, true},
			{"where", `pwd -P`, true},
			{"read a denied file", `cat .env`, false},
			{"move a denied file", `mv .env sub/env; e=$?; mv sub/env .env; exit $e`, false},
			{"clone a directory that may hold one", `perl -e 'exit(syscall(462, -2, my $s = "sub", -2, my $d = "sub2", 0) != 0)'; e=$?; rm -rf sub2; exit $e`, false}, // clonefileat(2)
			{"git's own files", `echo y >.git/index.lock && rm .git/index.lock`, true},
			{"git's configuration", `echo y >>.git/config`, false},
			{"git's configuration, spelled otherwise", `echo y >>.git/Config`, false},
			{"git's pointer, spelled otherwise", `echo y >.git/Commondir; e=$?; rm -f .git/Commondir; exit $e`, false},
			{"read outside", `cat ../outside/secret`, false},
			{"write outside", `echo y >../outside/new`, false},
			{"link into", `rm -f l; ln ../outside/secret l && cat l`, false},
			{"clone into", `cp -c ../outside/secret c`, false},
			{"list outside", `ls ../outside`, false},
			{"signal outside", `kill -0 ` + "$PPID", false},
		} {
			checkAct(t, plan, a, dir)
		}
	}
}

// checkAct runs an act unconfined, where it must succeed, and confined.
func checkAct(t *testing.T, plan *Plan, a macAct, dir string) {
	t.Helper()
	control := exec.Command("/bin/sh", "-c", a.script, "sh", dir)
	control.Dir = dir
	if b, err := control.CombinedOutput(); err != nil {
		t.Errorf("%s in %q: the control fails: %v\n%s", a.name, dir, err, b)
		return
	}
	status, out := sh(t, plan, a.script, dir)
	if (status == 0) != a.inside {
		t.Errorf("%s in %q: status %d\n%s", a.name, dir, status, out)
	}
}

// 7: the doors, in both modes. A program that is started through one of them would write a
// file.
func TestMacDoors(t *testing.T) {
	requireSeatbelt(t)
	dir := tempDir(t)
	app := filepath.Join(dir, "Door.app", "Contents", "MacOS")
	if err := os.MkdirAll(app, 0o700); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(dir, "mark")
	files := map[string]string{
		filepath.Join(app, "Door"): "#!/bin/sh\ntouch '" + mark + "'\n",
		filepath.Join(dir, "Door.app", "Contents", "Info.plist"): `<?xml version="1.0"?><plist version="1.0"><dict>
<key>CFBundleExecutable</key><string>Door</string><key>CFBundleIdentifier</key><string>dev.zsbx.door</string>
<key>CFBundlePackageType</key><string>APPL</string><key>LSUIElement</key><true/></dict></plist>`,
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	rw := policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: dir, Access: policy.Read | policy.Write | policy.Exec}}}}
	full := macPlan(t, dir, rw)
	modes := map[string]func(script string) (int, string){
		"full":       func(script string) (int, string) { return sh(t, full, script, dir) },
		"track only": func(script string) (int, string) { return shTracked(t, script, dir) },
	}
	label := "dev.zsbx.door." + filepath.Base(dir)
	for name, script := range map[string]string{
		"open":      `open -g -n "$1/Door.app"`,
		"launchctl": `launchctl submit -l ` + label + ` -- /usr/bin/touch "$1/mark"`,
		"osascript": `osascript -e 'tell application "Finder" to get name of startup disk' && touch "$1/mark"`,
	} {
		opened := func(run func()) bool {
			_ = os.Remove(mark)
			run()
			for range 50 {
				if _, err := os.Stat(mark); err == nil {
					return true
				}
				time.Sleep(100 * time.Millisecond)
			}
			return false
		}
		control := opened(func() {
			c := exec.Command("/bin/sh", "-c", script, "sh", dir)
			if b, err := c.CombinedOutput(); err != nil {
				t.Logf("%s: control: %v %s", name, err, b)
			}
		})
		_ = exec.Command("/bin/launchctl", "remove", label).Run()
		if !control {
			t.Logf("%s: the control does nothing on this machine: no proof", name)
		}
		for mode, run := range modes {
			if opened(func() { run(script) }) {
				t.Errorf("%s, %s: it went through", name, mode)
			}
			_ = exec.Command("/bin/launchctl", "remove", label).Run()
		}
	}
	for name, script := range map[string]string{"crontab": "crontab -l", "sudo": "sudo -n true", "at": "at -l"} {
		for mode, run := range modes {
			if status, out := run(script); status == 0 {
				t.Errorf("%s, %s: %s", name, mode, out)
			}
		}
	}
}

// TestMacTyping: nothing is typed into the caller's terminal (tty(4), TIOCSTI).
func TestMacTyping(t *testing.T) {
	requireSeatbelt(t)
	plan := macPlan(t, tempDir(t), policy.Policy{})
	for mode, confine := range map[string]func(*fork.Command) error{
		"control":    func(*fork.Command) error { return nil },
		"full":       func(c *fork.Command) error { _, err := plan.Confine(c); return err },
		"track only": tracked,
	} {
		master, tty, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		status, out, err := tryConfined([]string{"/usr/bin/perl", "-e", `exit !ioctl(STDIN, 0x80017472, my $key = "x")`}, func(c *fork.Command) error {
			c.Files[0], c.Terminal = tty, true
			return confine(c)
		})
		if err != nil || (status == 0) != (mode == "control") {
			t.Errorf("%s: status %d %s %v", mode, status, out, err)
		}
		tty.Close()
		master.Close()
	}
}

// TestMacNetwork: no network means none, ports mean these ports.
func TestMacNetwork(t *testing.T) {
	requireSeatbelt(t)
	dir := tempDir(t)
	off := policy.Named{Value: "false", Origin: policy.Origin{Source: "--no-net"}}
	reach := `curl -sS -m 10 -o /dev/null http://127.0.0.1:` // status 7 is a refused connection, and also a forbidden one
	for name, c := range map[string]struct {
		net  policy.Net
		want bool
	}{
		"open":  {policy.Net{}, true},
		"none":  {policy.Net{Allow: off}, false},
		"port":  {policy.Net{ConnectTCP: []policy.Port{{Number: 8765}}}, true},
		"other": {policy.Net{ConnectTCP: []policy.Port{{Number: 8766}}}, false},
	} {
		server := exec.Command("/usr/bin/python3", "-m", "http.server", "8765", "--bind", "127.0.0.1")
		server.Dir = dir
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		ready := false
		for range 100 {
			ready = exec.Command("/bin/sh", "-c", reach+"8765/").Run() == nil
			if ready {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if !ready {
			t.Error("the control fails: no server")
		} else if status, out := sh(t, macPlan(t, dir, policy.Policy{Net: c.net}), reach+"8765/"); (status == 0) != c.want {
			t.Errorf("%s: status %d %s", name, status, out)
		}
		_ = server.Process.Kill()
		_ = server.Wait()
	}
}
