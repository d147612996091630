package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
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

// withFew returns the command line of a shell that limits the processes of what it runs, and skips
// the test if that can't be done. A user's limit counts what the other tests run at the same time,
// so it has room for that. It does not hold for root, so root's tests make a control group.
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
		return []string{"bash", "-c", fmt.Sprintf("ulimit -u %d && %s", own+400, line)}
	}
	return inGroup(t, line, "90", "/pids/pids.max", "/pids.max")
}

// withLittle is the same for 200 MB of memory. Only a control group limits the memory of several
// processes.
func withLittle(t *testing.T, line string) []string {
	t.Helper()
	return inGroup(t, line, "200000000", "/memory/memory.limit_in_bytes", "/memory.max")
}

// inGroup returns the command line of a shell that enters a new control group. limits are the
// files that may have the limit, one for each version.
func inGroup(t *testing.T, line, value string, limits ...string) []string {
	t.Helper()
	for _, limit := range limits {
		parent, file := filepath.Split("/sys/fs/cgroup" + limit)
		group := filepath.Join(parent, "zsbx-"+strings.ReplaceAll(t.Name(), "/", "-"))
		err := os.Mkdir(group, 0o755)
		if err != nil && !errors.Is(err, fs.ErrExist) { // an earlier try of this test may have made it
			continue
		}
		t.Cleanup(func() { testkit.Within(testkit.Patience, func() bool { return os.Remove(group) == nil }) })
		if os.WriteFile(filepath.Join(group, file), []byte(value), 0o644) == nil {
			return []string{"sh", "-c", "echo 0 >" + group + "/cgroup.procs && " + line}
		}
	}
	t.Skip("no control group can be limited here")
	return nil
}

// withWatches limits what the user may have of inotify(7), in a user namespace of its own.
func withWatches(t *testing.T, line string) []string {
	t.Helper()
	testkit.NeedProgram(t, "unshare")
	limits := "cd /proc/sys/user && echo 3 >max_inotify_instances && echo 10 >max_inotify_watches"
	enter := []string{"unshare", "--user", "--map-root-user", "sh", "-c"}
	if out, err := exec.Command(enter[0], append(enter[1:], limits)...).CombinedOutput(); err != nil {
		t.Skipf("no user namespace can be limited here: %v: %s", err, out)
	}
	return append(enter, "("+limits+") && "+line)
}

// exhaust is a Perl program that uses something up, after it planted a file. Then it has the
// broker think about many calls.
type exhaust struct {
	name        string
	in          func(t *testing.T, line string) []string // limits it
	flags, uses string
	status      int
}

var exhausting = []exhaust{
	{"processes", withFew, "", forks, 7},
	{"processes of a kept session", withFew, "--keep --name exhausted", forks, 7},
	{"open files", withAlso("ulimit -n 64"), "", `my @h; while (open(my $h, "<", "/")) { push @h, $h } close shift @h for 1..8;`, 7},
	{"descriptors in flight", withAlso("ulimit -n 64"), "", inFlight, 7},
	{"processor time", withAlso("ulimit -t 1"), "", storm, 128 + int(syscall.SIGKILL)},
	{"memory", withLittle, "", hogs, 7},
	{"inotify", withWatches, "", watches, 7},
}

// withAlso adds a limit to those of withFew.
func withAlso(limit string) func(*testing.T, string) []string {
	return func(t *testing.T, line string) []string { return withFew(t, limit+"; "+line) }
}

// forks starts processes that do nothing, until no more can be made.
const forks = `while (defined(my $p = fork)) { $p or do { sleep 100; exit } }`

// hogs uses up memory all the time: the kernel kills one process after the other.
const hogs = `
	sub hog {
		my $p = fork // return;
		my @all;
		while (not $p) { push @all, "x" x 1048576 }
		waitpid($p, 0);
		return $? == 9;
	}
	hog() or exit 9;
	for (1..2) {
		next if fork;
		while (hog()) {}
		exit;
	}
	sleep 1;`

// watches uses up instances and watches of inotify(7).
const watches = `
	my ($init, $add) = (POSIX::uname())[4] eq "x86_64" ? (294, 254) : (26, 27);
	my (@all, $full);
	while (@all < 100 and (my $i = syscall($init, 0)) >= 0) { push @all, $i }
	for my $n (1..100) {
		open(my $f, ">", "f$n");
		$full = syscall($add, $all[0], "f$n", 2) < 0 and last;
	}
	exit 9 if @all == 100 or not $full;`

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
		t.Run(c.name, func(t *testing.T) { c.try(t, nil) })
		if c.flags != "" {
			continue
		}
		t.Run(c.name+", on a terminal", func(t *testing.T) {
			master, slave, err := pty.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer master.Close()
			defer slave.Close()
			before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil {
				t.Fatal(err)
			}
			c.flags = "-t"
			c.try(t, slave)
			after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
			if err != nil || *after != *before {
				t.Errorf("the terminal has %+v, %v, want %+v", after, err, before)
			}
		})
	}
}

// victim is the status of a program that the kernel has ended for want of memory.
const victim = 128 + int(syscall.SIGKILL)

func (c *exhaust) try(t *testing.T, terminal *os.File) {
	zsbx, dir, log := asZsbx(t), t.TempDir(), t.TempDir()
	said, st := c.run(t, zsbx, dir, log, terminal)
	for i := 0; st == victim && st != c.status && i < 3; i++ { // not the greedy ones were chosen
		dir, log = t.TempDir(), t.TempDir()
		said, st = c.run(t, zsbx, dir, log, terminal)
	}
	if st != c.status {
		t.Errorf("status %d: %s", st, said)
	}
	if strings.Contains(c.flags, "--keep") {
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
}

// run returns what zsbx said, and its status.
func (c *exhaust) run(t *testing.T, zsbx, dir, log string, terminal *os.File) ([]byte, int) {
	t.Helper()
	program := "use Socket; use POSIX (); open(my $f, '>', '.envrc'); close $f;" + c.uses + asking
	if err := os.WriteFile(filepath.Join(dir, "use.pl"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	args := c.in(t, "exec "+zsbx+" run --rw . --no-net "+c.flags+" --audit "+log+" -- perl use.pl")
	p := exec.Command(args[0], args[1:]...)
	p.Dir = dir
	out, err := os.Create(filepath.Join(t.TempDir(), "said")) // a pipe is open as long as what is kept runs
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p.Stdout, p.Stderr = out, out
	if terminal != nil {
		p.Stdin = terminal
		p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	st := ended(p, testkit.Patience)
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	return said, st
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
