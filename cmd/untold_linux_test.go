package cmd

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/testkit"
)

// TestTerminalOfKilled: if zsbx is killed, the keeper gives the terminal its settings back, but not
// those that somebody else has set since.
func TestTerminalOfKilled(t *testing.T) {
	t.Parallel()
	zsbx := asZsbx(t)
	for _, changed := range []bool{false, true} {
		master, slave, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer master.Close()
		defer slave.Close()
		settings := func() unix.Termios {
			s, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			return *s
		}
		before := settings()
		c := openCommand(zsbx, "run", "-t", "--rw", ".", "--", "sh", "-c", "touch ready; exec sleep 1000")
		c.Dir = t.TempDir()
		c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the terminal is raw", func() bool {
			_, err := os.Stat(filepath.Join(c.Dir, "ready"))
			return err == nil && settings() != before
		})
		want := before
		if changed {
			want.Lflag |= unix.ISIG
			if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, &want); err != nil {
				t.Fatal(err)
			}
		}
		keeper := keeperOf(t, c.Process.Pid)
		c.Process.Kill()
		c.Wait()
		testkit.Eventually(t, "the keeper has ended", func() bool { return syscall.Kill(keeper, 0) != nil })
		if got := settings(); got != want {
			t.Errorf("changed by another %t: the terminal has %+v, want %+v", changed, got, want)
		}
	}
}

// withFew returns the command line of a shell that limits the processes of what it runs to some
// 90, and skips the test if that can't be done. A user's limit does not hold for root, so root's
// tests make a control group.
func withFew(t *testing.T, line string) []string {
	t.Helper()
	if os.Geteuid() != 0 {
		if _, err := exec.LookPath("bash"); err != nil {
			t.Skip("bash is not installed")
		}
		own := 0
		tasks, _ := filepath.Glob("/proc/[0-9]*/task/*")
		for _, task := range tasks {
			if st, err := os.Stat(task); err == nil && int(st.Sys().(*syscall.Stat_t).Uid) == os.Geteuid() {
				own++
			}
		}
		return []string{"bash", "-c", fmt.Sprintf("ulimit -u %d && %s", own+90, line)}
	}
	for _, parent := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} {
		group := filepath.Join(parent, "zsbx-"+strings.ReplaceAll(t.Name(), "/", "-"))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { testkit.Within(testkit.Patience, func() bool { return os.Remove(group) == nil }) })
		if os.WriteFile(filepath.Join(group, "pids.max"), []byte("90"), 0o644) == nil {
			return []string{"sh", "-c", "echo 0 >" + group + "/cgroup.procs && " + line}
		}
	}
	t.Skip("no control group can limit processes here")
	return nil
}

// exhausting are the commands' Perl programs, after they planted a file, and the limits of their
// shell. Each then has the broker think about many calls.
var exhausting = []struct {
	name, limit, flags, uses string
	status                   int
}{
	{"processes", "", "", forks, 7},
	{"processes of a kept session", "", "--keep --name exhausted", forks, 7},
	{"open files", "ulimit -n 64; ", "", `my @h; while (open(my $h, "<", "/")) { push @h, $h } close shift @h for 1..8;`, 7},
	{"descriptors in flight", "ulimit -n 64; ", "", inFlight, 7},
	{"processor time", "ulimit -t 1; ", "", storm, 128 + int(syscall.SIGKILL)},
}

// forks starts processes that do nothing, until no more can be made.
const forks = `while (defined(my $p = fork)) { $p or do { sleep 100; exit } }`

// storm makes zsbx use its time for children that use little of theirs.
const storm = `
	for (;;) {
		my $p = fork;
		waitpid($p, 0) if $p;
		next if $p or not defined $p;
		for (1..200) { my $h; socket($h, 1, 1, 0) and connect($h, pack_sockaddr_un("nowhere")) }
		exit;
	}`

// inFlight sends one descriptor over and over, through pairs that nobody reads from.
const inFlight = `
	my @pairs;
	for (1..20) {
		socketpair(my $x, my $y, 1, 1, 0) or last;
		push @pairs, $x, $y;
		my $rights = pack("Q l l l x4", 20, 1, 1, 0);
		my $byte = "x";
		my $iov = pack("P Q", $byte, 1);
		my $msg = pack("Q L x4 P Q P Q l x4", 0, 0, $iov, 1, $rights, length $rights, 0);
		my $nr = (POSIX::uname())[4] eq "x86_64" ? 46 : 211;
		for (1..100) { last if syscall($nr, fileno $x, $msg, 0x40) < 0 }
	}`

// asking has the calls. Some wait: the queue of a socket that nobody accepts from is full.
const asking = `
	socket(my $l, 1, 1, 0); bind($l, pack_sockaddr_un("s")); listen($l, 0);
	for (1..40) { my $h; socket($h, 1, 1, 0) and connect($h, pack_sockaddr_un("nowhere")) }
	my @waiting;
	for (1..8) { my $h; socket($h, 1, 1 | 04000, 0) and connect($h, pack_sockaddr_un("s")); push @waiting, $h }
	sleep 1;
	exit 7;`

// TestExhausted: whatever the command uses up, zsbx tells what it planted, has its status, and
// the audit log its end.
func TestExhausted(t *testing.T) {
	if _, err := exec.LookPath("perl"); err != nil {
		t.Skip("perl is not installed")
	}
	for _, c := range exhausting {
		t.Run(c.name, func(t *testing.T) {
			zsbx, dir, log := asZsbx(t), t.TempDir(), t.TempDir()
			program := "use Socket; use POSIX (); open(my $f, '>', '.envrc'); close $f;" + c.uses + asking
			if err := os.WriteFile(filepath.Join(dir, "use.pl"), []byte(program), 0o644); err != nil {
				t.Fatal(err)
			}
			args := withFew(t, c.limit+"exec "+zsbx+" run --rw . --no-net "+c.flags+" --audit "+log+" -- perl use.pl")
			p := exec.Command(args[0], args[1:]...)
			p.Dir = dir
			out, err := os.Create(filepath.Join(t.TempDir(), "said")) // a pipe is open as long as what is kept runs
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			p.Stdout, p.Stderr = out, out
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			st := ended(p, testkit.Patience)
			said, _ := os.ReadFile(out.Name())
			if st != c.status {
				t.Errorf("status %d: %s", st, said)
			}
			if c.flags != "" {
				if out, err := exec.Command(zsbx, "reap", "exhausted").CombinedOutput(); err != nil {
					t.Errorf("reap: %v: %s", err, out)
				}
			}
			if !bytes.Contains(said, []byte(".envrc (new)")) {
				t.Errorf("not told: %s", said)
			}
			var lines []byte
			files, _ := filepath.Glob(log + "/*.jsonl")
			for _, name := range files {
				b, _ := os.ReadFile(name)
				lines = append(lines, b...)
			}
			if !bytes.Contains(lines, []byte(`"event":"end"`)) || !bytes.Contains(lines, fmt.Appendf(nil, `"status":%d`, c.status)) {
				t.Errorf("the log: %s", lines)
			}
		})
	}
}

// TestLittleMemory: where zsbx may use little memory, it fails before the command begins, if at
// all. Programs that are built with cgo need 8 MiB of it for each thread.
func TestLittleMemory(t *testing.T) {
	zsbx, ran := asZsbx(t), 0
	for _, limit := range []string{
		"-v 800000", "-v 1000000", "-v 1200000", "-v 1400000", "-v 1800000", "-v 2200000", "-v 3000000",
		"-d 60000", "-d 120000", "-d 180000", "-d 240000", "-d 300000", "-d 600000", "-v unlimited",
	} {
		p := openCommand("sh", "-c", "ulimit "+limit+` && exec "$0" run --rw . -- sh -c 'echo ran; sleep 0.1; exit 7'`, zsbx)
		p.Dir = t.TempDir()
		var said, trace bytes.Buffer
		p.Stdout, p.Stderr = &said, &trace
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		st := ended(p, soon)
		if said.Len() > 0 {
			ran++
		}
		if said.Len() > 0 && st != 7 {
			t.Errorf("ulimit %s: the command ran, status %d: %.300s", limit, st, &trace)
		}
	}
	if ran == 0 {
		t.Error("the command never ran")
	}
}
