package attack_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/policy"
)

// openTerminal makes a pseudo-terminal of this user, like that of another terminal window.
func openTerminal(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close(); tty.Close() })
	return master, tty
}

func terminalPlace(t *testing.T) *place {
	t.Helper()
	p := newPlace(t)
	for _, dev := range []string{"/dev/tty", "/dev/ptmx", "/dev/pts"} {
		p.baseline(t, dev)
	}
	return p
}

// TestOtherTerminals: the user's other terminals can't be read, written or configured.
func TestOtherTerminals(t *testing.T) {
	needMounts(t)
	_, tty := openTerminal(t)
	p := terminalPlace(t)
	plan := p.mountsPlan(t, enforce.Options{})
	for _, script := range []string{
		"echo x >" + tty.Name(),
		": <" + tty.Name(),
		"stty -F " + tty.Name() + " raw",
		"chmod 622 " + tty.Name(),
		"test -e " + tty.Name(),
	} {
		if status, out := p.sh(t, nil, script); status != 0 {
			t.Errorf("control: %s: exit status %d: %s", script, status, out)
		}
		if status, out := p.sh(t, plan, script); status == 0 {
			t.Errorf("%s: it worked: %s", script, out)
		}
	}
	if status, out := p.sh(t, p.mountsPlan(t, enforce.Options{Accepted: []string{enforce.GapTerminals}}), "echo x >"+tty.Name()); status != 0 {
		t.Errorf("shared: exit status %d: %s", status, out)
	}
	p.allow(t, policy.Read|policy.Write, "/dev/pts")
	if status, out := p.sh(t, p.mountsPlan(t, enforce.Options{}), "echo x >"+tty.Name()); status != 0 {
		t.Errorf("named: exit status %d: %s", status, out)
	}
}

// TestNewPrivateTerminals: programs that make terminals can.
func TestNewPrivateTerminals(t *testing.T) {
	needMounts(t)
	p := terminalPlace(t)
	plan := p.mountsPlan(t, enforce.Options{})
	if got := p.try(t, plan, "openpty"); got != 0 {
		t.Errorf("got %v", got)
	}
	for _, script := range []string{
		`test "$(script -qec 'tty; echo x >/dev/tty; stty rows 9' /dev/null | head -n 1 | tr -d '\r')" = /dev/pts/0`,
		`python3 -c 'import os, pty; m, s = pty.openpty(); assert os.ttyname(s) == os.ptsname(m) if hasattr(os, "ptsname") else os.ttyname(s); assert pty.spawn(["true"]) == 0'`,
	} {
		if control, out := p.sh(t, nil, script); control != 0 && !strings.Contains(script, "pts/0") {
			t.Logf("control: %s: exit status %d: %s", script, control, out)
		} else if status, out := p.sh(t, plan, script); status != 0 {
			t.Errorf("%s: exit status %d: %s", script, status, out)
		}
	}
}

// shows reads a terminal's output up to some text, without carriage returns.
func shows(master *os.File, upTo string) func() string {
	done := make(chan string, 1)
	go func() {
		buf, all := make([]byte, 4096), ""
		for !strings.HasSuffix(all, upTo) {
			n, err := master.Read(buf)
			if err != nil {
				break
			}
			all += string(buf[:n])
		}
		done <- strings.ReplaceAll(all, "\r", "")
	}()
	return func() string {
		select {
		case all := <-done:
			return all
		case <-time.After(testkit.Patience):
			return "nothing in time"
		}
	}
}

// TestOwnTerminal: the terminal that the command was started on keeps its name, and can be
// reopened by that, through the descriptors, and as /dev/tty.
func TestOwnTerminal(t *testing.T) {
	needMounts(t)
	for range 3 {
		openTerminal(t) // so that its number is not the first
	}
	master, tty := openTerminal(t)
	p := terminalPlace(t)
	const script = `set -e; tty; echo by name >$(tty); echo by descriptor >/dev/stderr; echo by tty >/dev/tty; stty -F $(tty) rows 5; stty size; test -c /dev/pts/ptmx`
	for _, plan := range []*enforce.Plan{nil, p.mountsPlan(t, enforce.Options{})} {
		c := &fork.Command{
			Path: "/bin/sh", Args: []string{"sh", "-c", script}, Dir: p.in, Env: []string{"PATH=/usr/bin:/bin"},
			Files: []*os.File{tty, tty, tty}, Keeper: &fork.Keeper{},
			Steps: []fork.Step{
				{Name: "setsid(2)", Nr: unix.SYS_SETSID},
				{Name: "ioctl(TIOCSCTTY)", Nr: unix.SYS_IOCTL, Args: [6]uintptr{0, unix.TIOCSCTTY, 1}},
			},
		}
		if plan != nil {
			if err := confine(plan, c); err != nil {
				t.Fatal(err)
			}
		}
		read := shows(master, "5 0\r\n")
		proc, err := fork.Start(c)
		if err != nil {
			t.Fatal(err)
		}
		status := await(t, proc).ExitStatus()
		shown := read()
		want := tty.Name() + "\nby name\nby descriptor\nby tty\n5 0\n"
		if status != 0 || shown != want {
			t.Errorf("confined %v: exit status %d, got %q, want %q", plan != nil, status, shown, want)
		}
		proc.Close()
	}
}
