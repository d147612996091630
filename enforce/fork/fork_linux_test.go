package fork

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// shell starts script in sh, with stdout into a file whose content the
// returned function gives.
func shell(t *testing.T, k *Keeper, script string, steps ...Step) (*Process, func() string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p, err := Start(&Command{
		Path: "/bin/sh", Args: []string{"sh", "-c", script}, Env: os.Environ(),
		Files: []*os.File{nil, out, nil}, Keeper: k, Steps: steps,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, func() string {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
}

// finish reads events to the end.
func finish(t *testing.T, p *Process) (ws syscall.WaitStatus, killed int) {
	t.Helper()
	for {
		ev, err := p.Next()
		if err == io.EOF {
			return ws, killed
		}
		if err != nil {
			t.Fatal(err)
		}
		switch ev.Kind {
		case Exited:
			ws = ev.Status
		case Emptied:
			killed = ev.Killed
		}
	}
}

// domainSteps puts the keeper into the outer domain and the command into the
// inner one, as packages track and enforce do.
func domainSteps(t *testing.T) (outer, inner []Step) {
	t.Helper()
	if v, err := llsys.LandlockGetABIVersion(); err != nil || v < 6 {
		t.Skipf("Landlock ABI 6 (Linux 6.12) is needed, this kernel has %d", v)
	}
	make := func() []Step {
		fd, err := llsys.LandlockCreateRuleset(&llsys.RulesetAttr{Scoped: llsys.ScopeSignal}, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Close(fd) })
		return []Step{
			{Name: "prctl(PR_SET_NO_NEW_PRIVS)", Nr: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_SET_NO_NEW_PRIVS, 1}},
			{Name: "landlock_restrict_self", Nr: unix.SYS_LANDLOCK_RESTRICT_SELF, Args: [6]uintptr{uintptr(fd), 0}},
		}
	}
	return make(), make()
}

func TestExitStatus(t *testing.T) {
	for _, k := range []*Keeper{nil, {}} {
		for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": -9, "kill -15 $$": -15} {
			p, _ := shell(t, k, script)
			ws, _ := finish(t, p)
			got := ws.ExitStatus()
			if ws.Signaled() {
				got = -int(ws.Signal())
			}
			if got != want {
				t.Errorf("keeper %v: %q ended with %d, want %d", k != nil, script, got, want)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	for _, k := range []*Keeper{nil, {}} {
		_, err := Start(&Command{Path: "/does/not/exist", Args: []string{"x"}, Keeper: k})
		var se *StepError
		if !errors.As(err, &se) || se.Stage != "exec" || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("missing file: %v", err)
		}
		_, err = Start(&Command{Path: "/bin/true", Args: []string{"x"}, Dir: "/does/not", Keeper: k})
		if !errors.As(err, &se) || !strings.Contains(se.Name, "/does/not") || !errors.Is(err, syscall.ENOENT) {
			t.Errorf("missing directory: %v", err)
		}
		bad := Step{Name: "bad", Nr: unix.SYS_PRCTL, Args: [6]uintptr{9999}}
		_, err = Start(&Command{Path: "/bin/true", Args: []string{"x"}, Steps: []Step{{Name: "getpid", Nr: unix.SYS_GETPID}, bad}, Keeper: k})
		if !errors.As(err, &se) || se.Stage != "command" || se.Name != "bad" || !errors.Is(err, syscall.EINVAL) {
			t.Errorf("failing step: %v", err)
		}
		bad.MayFail = true
		if p, err := Start(&Command{Path: "/bin/true", Args: []string{"x"}, Steps: []Step{bad}, Keeper: k}); err != nil {
			t.Errorf("a step that may fail: %v", err)
		} else {
			finish(t, p)
		}
	}
	var se *StepError
	_, err := Start(&Command{Path: "/bin/true", Args: []string{"x"}, Keeper: &Keeper{Steps: []Step{{Name: "bad", Nr: unix.SYS_PRCTL, Args: [6]uintptr{9999}}}}})
	if !errors.As(err, &se) || se.Stage != "keeper" {
		t.Errorf("failing keeper step: %v", err)
	}
}

// A keeper that is told that it has a domain but has none must refuse: its
// kill(-1) would reach the world.
func TestDomainIsProved(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	_, err := Start(&Command{Path: "/usr/bin/touch", Args: []string{"touch", marker}, Keeper: &Keeper{Domain: true}})
	if !errors.Is(err, ErrNoDomain) {
		t.Fatalf("got %v, want ErrNoDomain", err)
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran all the same")
	}
	outer, inner := domainSteps(t)
	p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Steps: inner, Keeper: &Keeper{Domain: true, Steps: outer}})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, p)
}

func TestOutResult(t *testing.T) {
	name, _ := syscall.BytePtrFromString(filepath.Join(t.TempDir(), "made"))
	text := []byte("hello")
	steps := []Step{
		{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), ptr(name), unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, 0o600}, Keep: name},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, ptr(&text[0]), uintptr(len(text))}, Keep: text},
	}
	steps[0].Out = &steps[1].Args[0]
	p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Steps: steps, Keeper: &Keeper{}})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	b, err := os.ReadFile(unix.BytePtrToString(name))
	if err != nil || string(b) != "hello" {
		t.Fatalf("the steps wrote %q, %v", b, err)
	}
}

// TestBackResult has one descriptor used twice, by steps that were copied
// after they were made.
func TestBackResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "made")
	name, _ := syscall.BytePtrFromString(file)
	text := []byte("hello")
	steps := []Step{
		{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), ptr(name), unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, 0o600}, Keep: name},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, ptr(&text[0]), uintptr(len(text))}, Back: [6]uint16{1}, Keep: text},
		{Name: "write", Nr: unix.SYS_WRITE, Args: [6]uintptr{0, ptr(&text[0]), uintptr(len(text))}, Back: [6]uint16{2}, Keep: text},
	}
	steps = append([]Step{{Name: "getpid", Nr: unix.SYS_GETPID}}, steps...)
	p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Steps: steps, Keeper: &Keeper{}})
	if err != nil {
		t.Fatal(err)
	}
	finish(t, p)
	b, err := os.ReadFile(file)
	if err != nil || string(b) != "hellohello" {
		t.Fatalf("the steps wrote %q, %v", b, err)
	}
}

// daemons leaves processes behind in every usual way and prints their pids.
const daemons = `
sleep 1000 & echo $!
setsid sleep 1000 & echo $!
(setsid sh -c 'sleep 1000 & echo $!; sleep 1000 & echo $!') &
wait %3
sh -c 'trap "" HUP TERM INT; kill -STOP $$' & echo $!
exit 3`

func TestNothingIsLeft(t *testing.T) {
	outer, inner := domainSteps(t)
	for name, k := range map[string]*Keeper{"subtree": {}, "domain": {Domain: true, Steps: outer}} {
		t.Run(name, func(t *testing.T) {
			var steps []Step
			if k.Domain {
				steps = inner
			}
			p, out := shell(t, k, daemons, steps...)
			ws, killed := finish(t, p)
			if ws.ExitStatus() != 3 {
				t.Errorf("exit status %d, want 3", ws.ExitStatus())
			}
			pids := strings.Fields(out())
			if len(pids) != 5 || killed < 5 {
				t.Errorf("%d processes were left behind, %d killed", len(pids), killed)
			}
			for _, pid := range pids {
				if alive(t, pid) {
					t.Errorf("process %s lives", pid)
				}
			}
		})
	}
}

// The control: without a keeper they live on.
func TestDaemonsLiveWithoutKeeper(t *testing.T) {
	p, out := shell(t, nil, "setsid sleep 1000 & echo $!")
	finish(t, p)
	pid := strings.TrimSpace(out())
	if !alive(t, pid) {
		t.Fatalf("process %s is gone", pid)
	}
	n, _ := strconv.Atoi(pid)
	syscall.Kill(n, syscall.SIGKILL)
}

func alive(t *testing.T, pid string) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	after := string(b[strings.LastIndexByte(string(b), ')')+1:])
	return !strings.HasPrefix(after, " Z") && !strings.HasPrefix(after, " X")
}

func TestKeepAndReapSignal(t *testing.T) {
	outer, inner := domainSteps(t)
	state, err := os.Create(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer state.Close()
	k := &Keeper{Domain: true, Steps: outer, Keep: true, State: state}
	p, out := shell(t, k, "setsid sleep 1000 & echo $!", inner...)
	ev, err := p.Next()
	if err != nil || ev.Kind != Exited {
		t.Fatalf("%+v, %v", ev, err)
	}
	time.Sleep(20 * time.Millisecond)
	if st, err := ReadKeeperState(state); err != nil || st.Phase != PhaseKept {
		t.Errorf("state %+v, %v, want PhaseKept", st, err)
	}
	pid := strings.TrimSpace(out())
	if !alive(t, pid) {
		t.Fatal("the kept process is gone")
	}
	p.Close() // the caller goes away; a kept session stays
	time.Sleep(20 * time.Millisecond)
	if !alive(t, pid) {
		t.Fatal("the kept process is gone after Close")
	}
	if err := syscall.Kill(p.KeeperPid, ReapSignal); err != nil {
		t.Fatal(err)
	}
	p.waitKeeper()
	if alive(t, pid) {
		t.Error("the kept process survived the reap")
	}
	st, err := ReadKeeperState(state)
	if err != nil || st.Phase != PhaseEmpty || st.Killed != 1 || st.Method != MethodDomain {
		t.Errorf("state %+v, %v", st, err)
	}
}

// TestFetcher: by way of its keeper, memory and descriptors of a session can be
// had by somebody else; of what is not there, the kernel's own error.
func TestFetcher(t *testing.T) {
	p, _ := shell(t, &Keeper{}, "exec sleep 1000 3</etc/passwd")
	line, err := p.Line()
	if err != nil || line == nil {
		t.Fatal(line, err)
	}
	defer line.Close()
	f := NewFetcher(int(line.Fd()))
	var theirs, own unix.Stat_t
	if err := unix.Stat("/etc/passwd", &own); err != nil {
		t.Fatal(err)
	}
	errno := unix.EBADF
	for i := 0; theirs.Ino != own.Ino && i < 1000; i++ { // before, it is nothing or a library
		time.Sleep(time.Millisecond)
		var fd int
		if fd, errno = f.Descriptor(p.Pid, 0, 3); errno == 0 {
			unix.Fstat(fd, &theirs)
			unix.Close(fd)
		}
	}
	if theirs.Ino != own.Ino {
		t.Errorf("descriptor 3: %v, inode %d, want %d", errno, theirs.Ino, own.Ino)
	}
	stack, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid))
	if err != nil {
		t.Fatal(err)
	}
	at, err := strconv.ParseUint(strings.Fields(string(stack))[27], 10, 64) // startstack
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1, 128, 4096} {
		buf, want := make([]byte, size), make([]byte, size)
		mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.Pid))
		if err != nil {
			t.Fatal(err)
		}
		mem.ReadAt(want, int64(at))
		mem.Close()
		n, errno := f.Memory(p.Pid, at, buf)
		if errno != 0 || n == 0 || string(buf) != string(want) {
			t.Errorf("%d bytes: %d, %v", size, n, errno)
		}
	}
	for name, errno := range map[string]unix.Errno{
		"EFAULT": second(f.Memory(p.Pid, 8, make([]byte, 8))), "ESRCH": second(f.Memory(1<<30, at, make([]byte, 8))),
		"EBADF": second(f.Descriptor(p.Pid, 0, 99)), "EINVAL": second(f.Descriptor(p.Pid, 1, 0)),
	} {
		if unix.ErrnoName(errno) != name {
			t.Errorf("%v, want %s", errno, name)
		}
	}
	p.Kill()
	finish(t, p)
	if n, errno := f.Memory(p.Pid, at, make([]byte, 8)); errno != unix.ESRCH {
		t.Errorf("after the end: %d, %v", n, errno)
	}
}

func second[T any](_ T, errno unix.Errno) unix.Errno { return errno }

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	empty, full, file := filepath.Join(dir, "empty"), filepath.Join(dir, "full"), filepath.Join(dir, "file")
	for _, d := range []string{empty, full} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{file, filepath.Join(full, "x")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := &Keeper{Remove: []string{file, empty + "/", full + "/", filepath.Join(dir, "none")}}
	p, _ := shell(t, k, "exit 0")
	finish(t, p)
	p.waitKeeper()
	if left, err := os.ReadDir(dir); err != nil || len(left) != 3 {
		t.Errorf("the caller was there, and left are: %v, %v", left, err)
	}
	p, _ = shell(t, k, "sleep 60")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p.waitKeeper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "full" {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := Start(&Command{Path: "/bin/true", Keeper: &Keeper{Remove: []string{strings.Repeat("x", RemoveSize)}}}); err == nil {
		t.Error("too long a list was taken")
	}
}

func TestStopAndContinue(t *testing.T) {
	for _, k := range []*Keeper{nil, {}} {
		p, _ := shell(t, k, "kill -STOP $$; exit 5")
		ev, err := p.Next()
		if err != nil || ev.Kind != Stopped || ev.Signal != syscall.SIGSTOP {
			t.Fatalf("%+v, %v", ev, err)
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if ws, _ := finish(t, p); ws.ExitStatus() != 5 {
			t.Errorf("exit status %d, want 5", ws.ExitStatus())
		}
	}
}

// The keeper holds nothing of its caller's but its own few descriptors, leaves
// the session, and gives the heap back.
func TestKeeperIsSmall(t *testing.T) {
	ballast := make([]byte, 32<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	p, _ := shell(t, &Keeper{}, "sleep 1000")
	defer func() { p.Kill(); finish(t, p) }()
	time.Sleep(20 * time.Millisecond)
	dir := fmt.Sprintf("/proc/%d", p.KeeperPid)
	if os.Getuid() == 0 {
		fds, err := os.ReadDir(dir + "/fd")
		if err != nil || len(fds) != 2 {
			t.Errorf("the keeper holds %d descriptors, %v, want 2", len(fds), err)
		}
		b, err := os.ReadFile(dir + "/smaps_rollup")
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) > 1 && strings.HasPrefix(f[0], "Private_") && f[0] != "Private_Hugetlb:" {
				t.Log(line)
				if kb, _ := strconv.Atoi(f[1]); kb > 1024 {
					t.Errorf("%s, want at most 1024 kB", line)
				}
			}
		}
	}
	sid, err := unix.Getsid(p.KeeperPid)
	if err != nil || sid != p.KeeperPid {
		t.Errorf("the keeper's session is %d, %v", sid, err)
	}
	if ballast[7] != 7 {
		t.Error("the caller's memory changed")
	}
}

func TestInheritedDescriptors(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	script := "ls /proc/self/fd | wc -l"
	c := exec.Command("sh", "-c", script)
	control, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []*Keeper{nil, {}} {
		p, out := shell(t, k, script)
		finish(t, p)
		// 0, 1, 2 and the one with which ls reads the directory.
		if got := strings.TrimSpace(out()); got != "4" {
			t.Errorf("the command has %s descriptors, want 4 (%s without)", got, strings.TrimSpace(string(control)))
		}
	}
}

func TestManyStarts(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			exec.Command("/bin/true").Run()
		}
	}()
	for i := range 200 {
		p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Keeper: &Keeper{}})
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		if ws, _ := finish(t, p); ws != 0 {
			t.Fatalf("start %d: status %v", i, ws)
		}
		p.Close()
	}
	<-done
}

func BenchmarkStart(b *testing.B) {
	for name, k := range map[string]*Keeper{"plain": nil, "keeper": {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Keeper: k})
				if err != nil {
					b.Fatal(err)
				}
				for {
					if _, err := p.Next(); err != nil {
						break
					}
				}
				p.Close()
			}
		})
	}
	b.Run("os-exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func ptr(p *byte) uintptr { return uintptr(unsafe.Pointer(p)) }

func TestBefore(t *testing.T) {
	outer, inner := domainSteps(t)
	name, _ := syscall.BytePtrFromString(filepath.Join(t.TempDir(), "made"))
	before := []Step{{Name: "mkdirat", Nr: unix.SYS_MKDIRAT, Args: [6]uintptr{^uintptr(99), ptr(name), 0o700}, Keep: name}}
	for _, k := range []*Keeper{nil, {}, {Domain: true, Steps: outer}} {
		p, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Before: before, Steps: inner, Keeper: k})
		if err != nil {
			t.Fatal(err)
		}
		finish(t, p)
		if err := os.Remove(unix.BytePtrToString(name)); err != nil {
			t.Error(err)
		}
	}
	bad := []Step{{Name: "bad", Nr: unix.SYS_PRCTL, Args: [6]uintptr{9999}}}
	for _, k := range []*Keeper{nil, {}} {
		var se *StepError
		if _, err := Start(&Command{Path: "/bin/true", Args: []string{"true"}, Before: bad, Keeper: k}); !errors.As(err, &se) || se.Stage != "before" {
			t.Errorf("failing step: %v", err)
		}
	}
}

// TestHold: the keeper leaves a descriptor open as long as it lives.
func TestHold(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := unix.Open(fifo, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(r)
	name, _ := syscall.BytePtrFromString(fifo)
	for _, hold := range []bool{false, true} {
		before := []Step{{Name: "openat", Nr: unix.SYS_OPENAT, Args: [6]uintptr{^uintptr(99), ptr(name), unix.O_WRONLY | unix.O_CLOEXEC}, Keep: name, Hold: hold}}
		p, err := Start(&Command{Path: "/bin/sleep", Args: []string{"sleep", "600"}, Before: before, Keeper: &Keeper{}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the keeper closes what it does not need once the command runs
		var b [1]byte
		if n, err := unix.Read(r, b[:]); hold != (err == unix.EAGAIN) {
			t.Errorf("hold %v, while it runs: %d, %v", hold, n, err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		finish(t, p)
		deadline := time.Now().Add(10 * time.Second)
		for {
			n, err := unix.Read(r, b[:])
			if n == 0 && err == nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("hold %v, at the end: %d, %v", hold, n, err)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// TestCallerGone: a keeper whose caller goes away before it said so starts
// nothing, and ends.
func TestCallerGone(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	done := make(chan error, 1)
	go func() {
		_, err := Start(&Command{
			Path: "/usr/bin/touch", Args: []string{"touch", marker}, Keeper: &Keeper{},
			Meanwhile: func(p *Process) { _ = p.Close() },
		})
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("started")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the keeper waits for ever")
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran all the same")
	}
}
