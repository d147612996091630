package cmd

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// beat is a script that shows for ten minutes that it is alive: it keeps a named pipe open.
const beat = "exec 9>beat; echo x >&9; : >up; sleep 600"

// soon is how long it may take until all is over: far less than the script lives.
const soon = testkit.Patience

// heart is the other end of the pipe.
type heart struct{ fd int }

// place makes a directory with the script.
func place(t *testing.T) (string, heart) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "beat.sh"), []byte(beat), 0o644); err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, "beat")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(pipe, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return dir, heart{fd}
}

// started waits until the script beats.
func (h heart) started(t *testing.T) {
	t.Helper()
	if !h.startsWithin(testkit.Patience) {
		t.Fatal("the command does not start")
	}
}

// startsWithin reports whether the script beats before d has passed.
func (h heart) startsWithin(d time.Duration) bool {
	return testkit.Within(d, func() bool {
		n, _ := unix.Read(h.fd, make([]byte, 16))
		return n > 0
	})
}

// inTime tries longer and longer time limits, in seconds: on a busy machine the command may not
// have started when a short one is over. Then try returns false. Without a limit there is one
// try.
func inTime(t *testing.T, limits bool, try func(limit int) bool) {
	t.Helper()
	for limit := 1; limit <= 64 && (limits || limit == 1); limit *= 4 {
		if try(limit) {
			return
		}
	}
	t.Fatal("the command does not start in time")
}

// limited replaces "LIMIT" with a time limit, and returns how long to wait for the start of a
// command that has it.
func limited(flags []string, limit int) ([]string, time.Duration) {
	i := slices.Index(flags, "LIMIT")
	if i < 0 {
		return flags, testkit.Patience
	}
	flags = slices.Clone(flags)
	flags[i] = fmt.Sprint(limit)
	return flags, time.Duration(limit)*time.Second + testkit.Patience/4
}

// stopsWithin reports whether the pipe is closed before d has passed.
func (h heart) stopsWithin(d time.Duration) bool {
	return testkit.Within(d, func() bool {
		n, err := unix.Read(h.fd, make([]byte, 16))
		return n == 0 && err == nil
	})
}

// ended waits for c, and returns its exit status as a shell does, or -1 if it did not end.
func ended(c *exec.Cmd, d time.Duration) int {
	done := make(chan struct{})
	go func() { c.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
		syscall.Kill(c.Process.Pid, syscall.SIGKILL)
		<-done
		return -1
	}
	ws := c.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return exitSignal + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// fullPipe returns a pipe that nobody reads and to which nothing more can be written.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{4096, 1} {
		for {
			if _, err := unix.Write(fds[1], make([]byte, n)); err != nil {
				break
			}
		}
	}
	unix.SetNonblock(fds[1], false)
	unix.SetNonblock(fds[0], false)
	r, w = os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// TestTimeoutOfStoppedJob: the command stops zsbx, in a shell with job control, and goes on
// itself.
func TestTimeoutOfStoppedJob(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for name, attack := range map[string]string{
		"the command stops itself": "sh -c 'sh beat.sh & kill -STOP $$'",
		"its group is stopped":     "sh -c '(until [ -e up ]; do sleep 0.01; done; read x </dev/tty) & bash -mc \"sh beat.sh\"'",
	} {
		for _, flags := range []string{"", "-t "} {
			t.Run(name+flags, func(t *testing.T) {
				t.Parallel()
				inTime(t, true, func(limit int) bool { return stoppedJob(t, zsbx, flags, attack, limit) })
			})
		}
	}
}

func stoppedJob(t *testing.T, zsbx, flags, attack string, limit int) bool {
	dir, h := place(t)
	c := exec.Command("bash", "--norc", "--noprofile", "-i")
	c.Dir = dir
	c.Env = append(openEnv(), "PS1="+prompt, "TERM=dumb", "HOME="+dir, "HISTFILE=")
	master, err := pty.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{}
	go io.Copy(s, master)
	defer func() {
		master.Close()
		syscall.Kill(c.Process.Pid, syscall.SIGKILL)
		c.Wait()
		if t.Failed() {
			t.Logf("the terminal showed:\n%s", s.text)
		}
	}()
	s.after(0, prompt)
	fmt.Fprintf(master, "%s run %s--timeout %d --kill-after 1 --rw . -- %s\r", zsbx, flags, limit, attack)
	_, start := limited([]string{"LIMIT"}, limit)
	if !h.startsWithin(start) {
		return false
	}
	if !h.stopsWithin(soon) {
		t.Error("what the command started outlived the limit")
	}
	testkit.Eventually(t, "zsbx ends with 124", func() bool {
		fmt.Fprint(master, "\recho stat''us=$?\rjobs\r")
		return testkit.Within(500*time.Millisecond, func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return strings.Contains(s.text, "Exit 124") || strings.Contains(s.text, "status=124")
		})
	})
	return true
}

// TestTimeoutOfStoppedTerminal: nothing can be written to the terminal.
func TestTimeoutOfStoppedTerminal(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for name, c := range map[string]struct {
		flags, command []string
		status         int
	}{
		"terminal":     {[]string{"--timeout", "LIMIT"}, []string{"sh", "beat.sh"}, 124},
		"own terminal": {[]string{"-t", "--timeout", "LIMIT"}, []string{"sh", "-c", "sh beat.sh & yes"}, 124},
		"output":       {[]string{"--max-output", "300k"}, []string{"sh", "-c", "sh beat.sh & yes"}, 137},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTime(t, slices.Contains(c.flags, "LIMIT"), func(limit int) bool {
				dir, h := place(t)
				master, slave, err := pty.Open()
				if err != nil {
					t.Fatal(err)
				}
				defer master.Close()
				if err := unix.IoctlSetInt(int(slave.Fd()), unix.TCXONC, unix.TCOOFF); err != nil {
					t.Fatal(err)
				}
				flags, start := limited(c.flags, limit)
				p := openCommand(zsbx, slices.Concat([]string{"run", "--rw", "."}, flags, []string{"--"}, c.command)...)
				p.Dir, p.Stdin, p.Stdout, p.Stderr = dir, slave, slave, slave
				p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				slave.Close()
				if !h.startsWithin(start) {
					ended(p, 0)
					return false
				}
				if c.status == 137 { // output is not copied, so its limit is not reached
					syscall.Kill(p.Process.Pid, syscall.SIGTERM)
					c.status = 143
				}
				if st := ended(p, soon); st != c.status {
					t.Errorf("status %d, want %d", st, c.status)
				}
				if !h.stopsWithin(0) {
					t.Error("what the command started outlived the limit")
				}
				return true
			})
		})
	}
}

// TestLimitsWithoutReader: nobody reads zsbx's messages, or the output that it copies.
func TestLimitsWithoutReader(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	const chatty = "sh beat.sh & until [ -e up ]; do sleep 0.01; done; yes"
	for name, c := range map[string]struct {
		flags   []string
		command string
		out     bool // stdout too
		sig     syscall.Signal
		status  int
	}{
		"time":                 {[]string{"--timeout", "LIMIT"}, "sh beat.sh", false, 0, 124},
		"time, output":         {[]string{"--timeout", "LIMIT"}, chatty, true, 0, 124},
		"time, tty":            {[]string{"-t", "--timeout", "LIMIT"}, chatty, true, 0, 124},
		"time and size":        {[]string{"--timeout", "LIMIT", "--max-output", "1M"}, chatty, true, 0, 124},
		"size":                 {[]string{"--max-output", "5k"}, chatty, true, 0, 137},
		"time, after the end":  {[]string{"--timeout", "LIMIT", "--max-output", "1M"}, "echo x >beat; echo hi", true, 0, 124},
		"SIGTERM, after it":    {[]string{"--max-output", "1M"}, "echo x >beat; echo hi", true, syscall.SIGTERM, 143},
		"SIGINT, after it":     {[]string{"--max-output", "1M"}, "echo x >beat; echo hi", true, syscall.SIGINT, 130},
		"SIGTERM, tty":         {[]string{"-t"}, "echo x >beat; echo hi", true, syscall.SIGTERM, 143},
		"SIGHUP, with failure": {[]string{"-t"}, "echo x >beat; echo hi; exit 3", true, syscall.SIGHUP, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inTime(t, slices.Contains(c.flags, "LIMIT"), func(limit int) bool {
				dir, h := place(t)
				flags, start := limited(c.flags, limit)
				p := openCommand(zsbx, slices.Concat([]string{"run", "--rw", "."}, flags, []string{"--", "sh", "-c", c.command})...)
				p.Dir = dir
				_, full := fullPipe(t)
				p.Stderr = full
				if c.out {
					p.Stdout = full
				}
				if err := p.Start(); err != nil {
					t.Fatal(err)
				}
				if !h.startsWithin(start) {
					ended(p, 0)
					return false
				}
				if c.sig != 0 {
					// Then zsbx waits for the reader. The keeper ends soon after the command.
					testkit.Eventually(t, "the command has ended", func() bool {
						keeper := firstChild(p.Process.Pid)
						return keeper == 0 || len(childrenOf(keeper)) == 0
					})
					p.Process.Signal(c.sig)
				}
				if st := ended(p, soon); st != c.status {
					t.Errorf("status %d, want %d", st, c.status)
				}
				if !h.stopsWithin(0) {
					t.Error("what the command started outlived the limit")
				}
				return true
			})
		})
	}
}

// TestSlowReaderGetsAll is the control: a late reader gets every byte, and status 0.
func TestSlowReaderGetsAll(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	want, err := exec.Command("seq", "1", "13500").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{{"--max-output", "1M"}, {"--max-output", "1M", "--timeout", "600"}, {"-t"}} {
		p := openCommand(zsbx, append(append([]string{"run"}, flags...), "--", "seq", "1", "13500")...)
		p.Dir = t.TempDir()
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p.Stdout = w
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the pipe is full", func() bool {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.Fd()), Events: unix.POLLOUT}}, 0)
			return n == 0 && err == nil
		})
		w.Close()
		got, _ := io.ReadAll(r)
		got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n"))
		if st := ended(p, soon); st != 0 || !bytes.Equal(got, want) {
			t.Errorf("%q: status %d, %d bytes of %d", flags, st, len(got), len(want))
		}
	}
}

// TestSlowReaderGetsWhatIsPermitted: output that goes beyond its limit when the command has ended
// reaches the reader up to the limit, however slow that is.
func TestSlowReaderGetsWhatIsPermitted(t *testing.T) {
	t.Parallel()
	const limit, written = 130000, 150000 // more than a pipe holds, and less than two and zsbx's buffer
	p := exec.Command(asZsbx(t), "run", "--max-output", fmt.Sprint(limit), "--", "head", "-c", fmt.Sprint(written), "/dev/zero")
	p.Dir = t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stdout = w
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	full := func() bool {
		n, _ := unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		return n == 64<<10
	}
	got := 0
	read := func(n int64) {
		n, _ = io.CopyN(io.Discard, r, n)
		got += int(n)
	}
	// In the first pause the time passes that a command has whose output went beyond the limit
	// before it ended. In the second one zsbx would end if that counted.
	for _, pause := range []time.Duration{1200, 600} {
		testkit.Eventually(t, "the pipe is full", full)
		time.Sleep(pause * time.Millisecond)
		read(48 << 10)
	}
	read(written)
	if st := ended(p, soon); st != 137 || got != limit {
		t.Errorf("status %d, %d bytes of %d", st, got, limit)
	}
}
