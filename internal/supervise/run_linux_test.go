package supervise_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/supervise"
	"github.com/zsbx/zsbx/internal/testkit"
	"github.com/zsbx/zsbx/internal/track"
	"github.com/zsbx/zsbx/policy"
)

func TestMain(m *testing.M) {
	supervise.Init()
	if os.Getenv(noGroupsEnv) == "refuse" {
		refuseGroups()
	}
	if len(os.Args) == 2 && os.Args[1] == writeLateArg {
		writeLate()
	}
	os.Exit(m.Run())
}

// noGroupsEnv is "refuse" if this program is to make the kernel refuse to put processes into
// control groups. Groups can still be made, which is how the tracker is probed.
const noGroupsEnv = "ZSBX_TEST_GROUPS"

// refuseGroups makes writes of one byte fail in this process, which nothing else in it makes: see
// seccomp(2).
func refuseGroups() {
	jump := func(k uint32, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: no}
	}
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	filter := []unix.SockFilter{
		load(0), jump(unix.SYS_WRITE, 3), // struct seccomp_data: nr, and the length
		load(16 + 2*8), jump(1, 1),
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x50000 | uint32(unix.EACCES)}, // SECCOMP_RET_ERRNO
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},                    // SECCOMP_RET_ALLOW
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread() // for no_new_privs
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	const tsync = 1 // SECCOMP_FILTER_FLAG_TSYNC
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, tsync, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		panic(errno)
	}
}

// place makes a working directory, with a home directory and a store of sessions for the test, and
// a policy that lets the directory be written. Without Landlock that policy can't be enforced.
func place(t *testing.T) (dir string, p *policy.Policy) {
	t.Helper()
	caps := enforce.Probe()
	testkit.NeedLandlock(t, caps.Landlock, 1, caps.LandlockReason)
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(home, "work")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", testkit.SystemPath(os.Getenv("PATH"))) // before HOME changes
	t.Setenv("HOME", home)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	t.Chdir(dir)
	rule := policy.Rule{Path: ".", Access: policy.Read | policy.Write | policy.Exec}
	return dir, policy.Merge(policy.Baseline("linux"), &policy.Policy{FS: policy.FS{Rules: []policy.Rule{rule}}})
}

// shell returns the options for a script of sh(1).
func shell(script string) supervise.Options {
	return supervise.Options{Args: []string{"sh", "-c", script}}
}

// noSessions fails the test if a session is left in the store, running or not.
func noSessions(t *testing.T) {
	t.Helper()
	st, err := track.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if all, err := st.List(); err != nil || len(all) > 0 {
		t.Errorf("sessions are left: %+v, %v", all, err)
	}
}

// isGone reports whether a process ends. Process 1 may take minutes to collect it.
func isGone(pid int) bool {
	return testkit.Within(testkit.Patience, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(b), ") Z ")
	})
}

// TestStandardIO: readers and writers that are not files.
func TestStandardIO(t *testing.T) {
	_, p := place(t)
	var out, both bytes.Buffer
	o := shell("cat; echo problem >&2; exit 3")
	o.Stdin, o.Stdout, o.Stderr = strings.NewReader(strings.Repeat("x", 1<<20)), &out, &both
	r, err := supervise.Run(context.Background(), p, o)
	if err != nil || r.ExitCode() != 3 || !r.Failed || !r.Report.Done() {
		t.Errorf("%+v, %v", r, err)
	}
	if out.Len() != 1<<20 || both.String() != "problem\n" {
		t.Errorf("%d bytes, %q", out.Len(), both.String())
	}
	both.Reset()
	o = shell("echo a; echo b >&2; test -t 0 && echo tty; read x || echo end")
	o.Stdout, o.Stderr = &both, &both
	if _, err := supervise.Run(context.Background(), p, o); err != nil || both.String() != "a\nb\nend\n" {
		t.Errorf("one writer: %q, %v", both.String(), err)
	}
	both.Reset()
	o = shell("test -t 0 && test -t 1 && tty </dev/tty >/dev/null && read x && echo got $x")
	o.TTY, o.Stdin, o.Stdout = true, strings.NewReader("typed\n"), &both
	if r, err := supervise.Run(context.Background(), p, o); err != nil || r.ExitCode() != 0 || !strings.Contains(both.String(), "got typed") {
		t.Errorf("terminal: status %d, %q, %v", r.ExitCode(), both.String(), err)
	}
	noSessions(t)
}

// TestContext: when the context is done, all of the session ends, including what would be kept.
func TestContext(t *testing.T) {
	for _, keep := range []bool{false, true} {
		_, p := place(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		o := shell("setsid sleep 1000 & echo $!; wait")
		o.Stdout, o.Keep = w, keep
		c, err := supervise.Start(ctx, p, o)
		w.Close()
		if err != nil {
			t.Fatal(err)
		}
		line := make([]byte, 20)
		n, _ := r.Read(line)
		pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		res, err := c.Wait()
		if !errors.Is(err, context.Canceled) || res.Report.Kept {
			t.Errorf("keep %v: %+v, %v", keep, res, err)
		}
		if !isGone(pid) || !isGone(c.Pid()) {
			t.Errorf("keep %v: a process is left", keep)
		}
		noSessions(t)
		if _, err := supervise.Start(ctx, p, shell("touch started")); !errors.Is(err, context.Canceled) {
			t.Errorf("started after the end: %v", err)
		}
	}
}

// TestKeeperHasOwnMemory: this process and the keeper share no memory. A kernel that is out of
// memory kills all processes that share it, and nobody would be left to end the session.
func TestKeeperHasOwnMemory(t *testing.T) {
	_, p := place(t)
	o := shell("sleep 1000")
	o.Job = true
	c, err := supervise.Start(context.Background(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	children, _ := filepath.Glob("/proc/self/task/*/children")
	keepers := 0
	for _, file := range children {
		b, _ := os.ReadFile(file)
		for child := range strings.FieldsSeq(string(b)) {
			pid, _ := strconv.Atoi(child)
			const kcmpVM = 1
			same, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(pid), kcmpVM, 0, 0, 0)
			if errno == 0 && same == 0 {
				t.Error("the keeper shares this process's memory")
			}
			keepers++
		}
	}
	if keepers == 0 {
		t.Error("there is no keeper")
	}
	if err := c.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if _, err := c.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSignal: the caller sends signals to the command, which gets none that this process gets.
func TestSignal(t *testing.T) {
	_, p := place(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := shell("trap 'exit 9' USR1; echo; while :; do sleep 0.1; done")
	o.Stdout = w
	c, err := supervise.Start(context.Background(), p, o)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = r.Read(make([]byte, 1))
	if err := c.Signal(syscall.SIGUSR1); err != nil {
		t.Error(err)
	}
	if res, err := c.Wait(); err != nil || res.ExitCode() != 9 {
		t.Errorf("status %d, %v", res.ExitCode(), err)
	}
}

// TestNotStarted: what keeps a command from being started, by its type. Nothing is left running.
func TestNotStarted(t *testing.T) {
	dir, p := place(t)
	if err := os.WriteFile("plain", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	limited := policy.Merge(p, &policy.Policy{Limits: policy.Limits{MaxOutput: policy.Limit{Value: 10}}})
	touch := []string{"touch", filepath.Join(dir, "started")}
	code := func(want policy.Code) func(error) bool {
		return func(err error) bool { var e *supervise.Error; return errors.As(err, &e) && e.Code == want }
	}
	nothing := &enforce.Caps{OS: "linux", Arch: "amd64"}
	asked := 0
	for name, c := range map[string]struct {
		p    *policy.Policy
		o    supervise.Options
		want func(error) bool
	}{
		"no such command": {p, supervise.Options{Args: []string{"no-such-command"}}, code(supervise.CodeNotFound)},
		"no program":      {p, supervise.Options{Args: []string{"./plain"}}, code(supervise.CodeCannotRun)},
		"no policy":       {nil, supervise.Options{Args: touch}, func(err error) bool { return err != nil }},
		"no command":      {p, supervise.Options{}, func(err error) bool { return err != nil }},
		"a missing path": {
			policy.Merge(p, &policy.Policy{FS: policy.FS{Rules: []policy.Rule{{Path: "missing", Access: policy.Read}}}}),
			supervise.Options{Args: touch},
			func(err error) bool { var e *policy.Error; return errors.As(err, &e) && e.Code == policy.CodeMissing },
		},
		"a limit nobody sees to": {limited, supervise.Options{Args: touch, Keep: true}, code(supervise.CodeUsage)},
		"gaps":                   {p, supervise.Options{Args: touch, Caps: nothing}, func(err error) bool { var e *enforce.GapError; return errors.As(err, &e) }},
		"gaps, asked": {
			p, supervise.Options{Args: touch, Caps: nothing, Accept: func([]enforce.Gap) bool { asked++; return false }},
			func(err error) bool { var e *enforce.GapError; return errors.As(err, &e) },
		},
		"a name that is taken": {p, supervise.Options{Args: touch, Name: "no name"}, code(supervise.CodeSession)},
	} {
		if _, err := supervise.Start(context.Background(), c.p, c.o); !c.want(err) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(touch[1]); err == nil {
			t.Fatalf("%s: it was started", name)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	if r, err := supervise.Run(context.Background(), p, supervise.Options{Args: touch}); err != nil || r.ExitCode() != 0 {
		t.Errorf("control: %+v, %v", r, err)
	}
	noSessions(t)
}

// TestTrackerRefused: the kernel refuses a control group that it offered when it was probed. The
// command is not started, and the error says what to type.
func TestTrackerRefused(t *testing.T) {
	if os.Getenv(noGroupsEnv) == "" {
		for groups, want := range map[string]string{"control": "tracked by cgroup", "refuse": "try --track subtree"} {
			c := exec.Command(os.Args[0], "-test.run=^TestTrackerRefused$", "-test.v")
			c.Env = append(os.Environ(), noGroupsEnv+"="+groups)
			out, err := c.CombinedOutput()
			if bytes.Contains(out, []byte("--- SKIP")) {
				t.Skipf("%s", out)
			}
			if err != nil || !bytes.Contains(out, []byte(want)) {
				t.Errorf("%v, want %s\n%s", err, want, out)
			}
		}
		return
	}
	_, p := place(t)
	caps := enforce.Probe()
	if c, err := track.Best(false); err != nil || c.Kind != track.Cgroup || c.Scope {
		testkit.Lacks(t, testkit.Cgroup, c.Why, err)
	}
	caps.Landlock = min(caps.Landlock, 5) // no scopes: the tracker is not a domain
	o := shell("echo done")
	var out bytes.Buffer
	o.Caps, o.Stdout, o.Accept = &caps, &out, func([]enforce.Gap) bool { return true }
	r, err := supervise.Run(context.Background(), p, o)
	var refused *supervise.Error
	switch {
	case errors.As(err, &refused) && refused.Code == supervise.CodeGap && out.Len() == 0:
		fmt.Println("try", refused.Hint)
	case err != nil || r.ExitCode() != 0 || out.String() != "done\n":
		t.Fatalf("%+v, %q, %v", r, out.String(), err)
	default:
		fmt.Println("tracked by", r.Report.Tracker)
	}
	noSessions(t)
}

// TestTempInUse: the private temporary directory is removed after the processes that still write
// there have been ended.
func TestTempInUse(t *testing.T) {
	_, p := place(t)
	var out bytes.Buffer
	o := shell(`echo $TMPDIR; (while :; do mkdir -p $TMPDIR/a; : >$TMPDIR/a/b; done) 2>&- & exit 0`)
	o.Stdout = &out
	if r, err := supervise.Run(context.Background(), p, o); err != nil || r.ExitCode() != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	dir := strings.TrimSpace(out.String())
	if _, err := os.Lstat(dir); dir == "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q is still there", dir)
	}
}

// TestKeepAnswers: what is left running gets answers, even if it asks for the first time after the
// command's end and nobody waits for Served.
func TestKeepAnswers(t *testing.T) {
	dir, p := place(t)
	if caps := enforce.Probe(); !caps.SeccompNotify {
		testkit.Lacks(t, testkit.Seccomp, caps.SeccompNotifyReason)
	}
	testkit.NeedProgram(t, "bash")
	o := shell(`(while ! test -e go; do sleep 0.05; done; ` +
		`LC_ALL=C bash -c ': >/dev/tcp/127.0.0.1/9' 2>said; mv said answered) >/dev/null 2>&1 &`)
	o.Keep = true
	r, err := supervise.Run(context.Background(), p, o)
	if err != nil || !r.Report.Kept {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said []byte
	testkit.Eventually(t, "the call is answered", func() bool {
		said, err = os.ReadFile(filepath.Join(dir, "answered"))
		return err == nil
	})
	if len(said) == 0 || strings.Contains(string(said), "not implemented") { // ENOSYS: nobody is left to answer
		t.Errorf("the answer is %q", said)
	}
	st, err := track.OpenStore()
	if err == nil {
		_, err = supervise.Reap(context.Background(), st, r.Report.ID)
	}
	if err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, "the queue is closed", func() bool {
		fds, err := filepath.Glob("/proc/self/fd/*")
		return err == nil && !slices.ContainsFunc(fds, func(fd string) bool {
			to, _ := os.Readlink(fd)
			return strings.Contains(to, "seccomp")
		})
	})
}

// TestLimits: the command is ended, and the error names the limit.
func TestLimits(t *testing.T) {
	_, p := place(t)
	var out bytes.Buffer
	var warned []string
	o := shell("yes")
	o.Stdout, o.Warn = &out, func(w supervise.Warning) { warned = append(warned, w.Text) }
	var limit *supervise.LimitError
	r, err := supervise.Run(context.Background(), policy.Merge(p, &policy.Policy{Limits: policy.Limits{MaxOutput: policy.Limit{Value: 100}}}), o)
	if !errors.As(err, &limit) || limit.Bytes != 100 || out.Len() != 100 || r.ExitCode() == 0 {
		t.Errorf("%+v, %v, %d bytes", r, err, out.Len())
	}
	r, err = supervise.Run(context.Background(), policy.Merge(p, &policy.Policy{Limits: policy.Limits{Timeout: policy.Limit{Value: int64(100 * time.Millisecond)}}}), shell("sleep 1000"))
	if !errors.As(err, &limit) || limit.Time != 100*time.Millisecond {
		t.Errorf("%+v, %v", r, err)
	}
	if len(warned) != 1 {
		t.Errorf("warned: %q", warned)
	}
	noSessions(t)
}

// TestAtOnce: several commands of one program do not disturb each other.
func TestAtOnce(t *testing.T) {
	_, p := place(t)
	const n = 4
	results := make(chan string, n)
	for i := range n {
		go func() {
			var out bytes.Buffer
			o := shell("sleep 0.2; echo " + strconv.Itoa(i) + "; exit " + strconv.Itoa(i))
			o.Stdout = &out
			r, err := supervise.Run(context.Background(), p, o)
			if want := strconv.Itoa(i); err != nil || r.ExitCode() != i || strings.TrimSpace(out.String()) != want {
				results <- want + ": " + out.String() + ", " + strconv.Itoa(r.ExitCode())
				return
			}
			results <- ""
		}()
	}
	for range n {
		if r := <-results; r != "" {
			t.Error(r)
		}
	}
	noSessions(t)
}

// TestChangesLate: what the kernel still writes for a process that is ending (io_submit(2)) is
// reported, too.
func TestChangesLate(t *testing.T) {
	dir, p := place(t)
	self, err := os.ReadFile("/proc/self/exe")
	if err := errors.Join(err, os.WriteFile("late", self, 0o755), os.Mkdir("made", 0o755)); err != nil {
		t.Fatal(err)
	}
	r, err := supervise.Run(context.Background(), p, supervise.Options{Args: []string{"./late", writeLateArg}})
	if r.ExitCode() == cannotWriteLate {
		t.Skip("this file system has no O_DIRECT")
	}
	if config, err := os.ReadFile("made/.git/config"); err != nil || !strings.Contains(string(config), "fsmonitor") {
		t.Fatalf("control: %q, %v", config, err)
	}
	want := []enforce.Change{{Path: dir + "/made/.git/config", New: true}}
	if err != nil || r.ExitCode() != 0 || !slices.Equal(r.Changes, want) {
		t.Errorf("exit status %d, %v; told %v, want %v", r.ExitCode(), err, r.Changes, want)
	}
}

const (
	writeLateArg    = "write-late"
	cannotWriteLate = 77
)

// writeLate makes a plain repository, and ends while the kernel has yet to write there, after much
// else, what git would run.
func writeLate() {
	const page, piece, pieces = 4096, 1 << 20, 128
	config := func(more string) []byte {
		text := "[core]\n\trepositoryformatversion = 0\n\tbare = false\n" + more
		return []byte(text + strings.Repeat("\n", page-len(text)))
	}
	err := errors.Join(os.MkdirAll("made/.git/objects", 0o755), os.MkdirAll("made/.git/refs", 0o755),
		os.WriteFile("made/.git/HEAD", []byte("ref: refs/heads/main\n"), 0o644), os.WriteFile("made/.git/config", config(""), 0o644),
		os.WriteFile("much", nil, 0o644))
	if err != nil {
		panic(err)
	}
	last, err := unix.Open("made/.git/config", unix.O_WRONLY|unix.O_DIRECT, 0)
	much, err2 := unix.Open("much", unix.O_WRONLY|unix.O_DIRECT, 0)
	if errors.Join(err, err2, unix.Fallocate(much, 0, 0, pieces*piece), unix.Fsync(last)) != nil {
		os.Exit(cannotWriteLate)
	}
	room, err := unix.Mmap(-1, 0, piece, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		panic(err)
	}
	copy(room, config("\tfsmonitor = false\n"))
	type iocb struct { // struct iocb of linux/aio_abi.h
		_            uint64 // its data
		_, _         uint32 // a key, and flags
		opcode, _    uint16 // and the priority
		fd           uint32
		buffer       unsafe.Pointer
		size, offset uint64
		_            uint64
		_, _         uint32 // more flags, and a descriptor for events
	}
	const pwrite = 1 // IOCB_CMD_PWRITE
	var all [pieces + 1]*iocb
	for i := range all {
		all[i] = &iocb{opcode: pwrite, fd: uint32(much), buffer: unsafe.Pointer(&room[0]), size: piece, offset: uint64(i) * piece}
	}
	all[pieces].fd, all[pieces].size, all[pieces].offset = uint32(last), page, 0
	var queue uintptr
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, uintptr(len(all)), uintptr(unsafe.Pointer(&queue)), 0); errno != 0 {
		os.Exit(cannotWriteLate)
	}
	n, _, _ := unix.Syscall(unix.SYS_IO_SUBMIT, queue, uintptr(len(all)), uintptr(unsafe.Pointer(&all)))
	if int(n) != len(all) {
		os.Exit(cannotWriteLate)
	}
	os.Exit(0)
}

// TestOvertaken: if a protected file is removed between the plan and the start, the command still
// starts.
func TestOvertaken(t *testing.T) {
	dir, p := place(t)
	for _, name := range []string{".envrc", "plain"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	narrow := policy.Rule{Path: "plain", Access: policy.Read, Origin: policy.Origin{Source: "--ro"}} // for a warning, once there is a plan
	p.FS.Rules = append(p.FS.Rules, narrow)
	o, told := shell("exit 0"), 0
	o.Warn = func(w supervise.Warning) {
		if strings.Contains(w.Text, "rules add up") {
			told++
			_ = os.Remove(filepath.Join(dir, ".envrc"))
		}
	}
	if res, err := supervise.Run(t.Context(), p, o); err != nil || res.ExitCode() != 0 || told != 1 {
		t.Errorf("status %d, %v; %d warnings", res.ExitCode(), err, told)
	}
	noSessions(t)
}

// TestFailedStartEndsListening: a start with Job that fails leaves no goroutine, and no signal that
// this process does not get.
func TestFailedStartEndsListening(t *testing.T) {
	_, p := place(t)
	o := shell("true")
	o.Job = true
	if _, err := supervise.Run(context.Background(), p, o); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	o.Name = "not a name"
	for range 20 {
		if _, err := supervise.Run(context.Background(), p, o); err == nil {
			t.Fatal("control: it starts")
		}
	}
	if !testkit.Within(testkit.Patience, func() bool { return runtime.NumGoroutine() <= before+2 }) {
		t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
	}
}
