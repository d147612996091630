package cmd

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestUnsaid: the command fills zsbx's standard error and makes it fail at once, so that nobody
// would learn what it changed. dd(1) sets O_NONBLOCK on the open file, which both share.
func TestUnsaid(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	const change, fill = "echo x >.envrc", "; for size in 4096 1; do dd if=/dev/zero oflag=nonblock bs=$size count=20000 >&2; done; true"
	for name, c := range map[string]struct {
		command string
		read    bool // as soon as the pipe is full
		status  int
	}{
		"control":     {change, false, 0},
		"never read":  {change + fill, false, exitAfter},
		"read late":   {change + fill, true, 0},
		"nothing new": {"true" + fill, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := openCommand(zsbx, "run", "--rw", ".", "--", "sh", "-c", c.command)
			p.Dir = t.TempDir()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			p.Stderr = w
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			said := make(chan string, 1)
			read := func() { b, _ := io.ReadAll(r); said <- string(b) }
			if c.read {
				testkit.Eventually(t, "the pipe is full", func() bool {
					n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.Fd()), Events: unix.POLLOUT}}, 0)
					return n == 0 && err == nil
				})
				go read()
			}
			if st := ended(p, soon); st != c.status {
				t.Errorf("status %d, want %d", st, c.status)
			}
			w.Close()
			if !c.read {
				read()
			}
			tells := c.status == 0 && strings.HasPrefix(c.command, change)
			if got := <-said; strings.Contains(got, ".envrc (new)") != tells {
				t.Errorf("the change is told: %v; %.300q", !tells, strings.Trim(got, "\x00"))
			}
		})
	}
}

// TestUnsaidAtStart: nobody reads what zsbx says before the command begins. The command runs all
// the same, and the status says that something was not said.
func TestUnsaidAtStart(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for name, c := range map[string]struct {
		size   int  // of what is in the pipe already
		late   bool // somebody reads once the command runs
		status int
	}{
		"control":    {0, true, 0},
		"never read": {1 << 20, false, exitAfter},
		"read late":  {1 << 20, true, exitAfter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := w.SetWriteDeadline(time.Now().Add(time.Second / 10)); err != nil {
				t.Fatal(err)
			}
			full, _ := w.Write(make([]byte, c.size))
			script := "touch ran .envrc; until [ -e read ]; do sleep 0.05; done"
			p := openCommand(zsbx, "run", "--rw", ".", "sh", "-c", script, "--no-net") // which is too late
			p.Dir, p.Stderr = t.TempDir(), w
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			testkit.Eventually(t, "the command runs", func() bool {
				_, err := os.Stat(filepath.Join(p.Dir, "ran"))
				return err == nil
			})
			said := make(chan string, 1)
			read := func() { b, _ := io.ReadAll(r); said <- string(b[full:]) }
			if c.late {
				go read()
			}
			if err := os.WriteFile(filepath.Join(p.Dir, "read"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			if st := ended(p, soon); st != c.status {
				t.Errorf("status %d, want %d", st, c.status)
			}
			if !c.late {
				return
			}
			if got := <-said; !strings.Contains(got, "--no-net is passed to sh") || !strings.Contains(got, ".envrc (new)") {
				t.Errorf("said: %s", got)
			}
		})
	}
}
