package fork

import (
	"errors"
	"fmt"
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

	"github.com/zsbx/zsbx/internal/testkit"
)

// domainSteps puts the keeper into the outer domain and the command into the
// inner one, as packages track and enforce do.
func domainSteps(t *testing.T) (outer, inner []Step) {
	t.Helper()
	v, err := llsys.LandlockGetABIVersion()
	testkit.NeedLandlock(t, v, 6, fmt.Sprint(err))
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

// A keeper that was wrongly told that it has a domain must refuse, since its kill(-1) would
// reach everything.
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

// daemons leaves processes behind in every usual way and prints their pids. The last one has a
// zombie child.
const daemons = `
sleep 1000 & echo $!
setsid sleep 1000 & echo $!
(setsid sh -c 'sleep 1000 & echo $!; sleep 1000 & echo $!') &
wait %3
sh -c 'trap "" HUP TERM INT; kill -STOP $$' & echo $!
set -- $(sh -c '(until grep sleep /proc/$$/comm; do :; done) >/dev/null & echo $$ $!; exec sleep 1000 >&-' &); echo $1
until grep -q '^State:.Z' /proc/$2/status; do sleep 0.01; done
exit 3`

// noPidfds makes pidfd_open(2) fail, as the filters of some containers do.
func noPidfds(t *testing.T) []Step {
	m := memory(t)
	filter := PutSlice(m, []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_PIDFD_OPEN, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	})
	prog := Put(m, unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]})
	return []Step{
		{Name: "prctl(PR_SET_NO_NEW_PRIVS)", Nr: unix.SYS_PRCTL, Args: [6]uintptr{unix.PR_SET_NO_NEW_PRIVS, 1}},
		{Name: "seccomp(2)", Nr: unix.SYS_SECCOMP, Args: [6]uintptr{unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(prog))}},
	}
}

func TestNothingIsLeft(t *testing.T) {
	outer, inner := domainSteps(t)
	for name, k := range map[string]*Keeper{"subtree": {}, "no pidfds": {Steps: noPidfds(t)}, "domain": {Domain: true, Steps: outer}} {
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
			if len(pids) != 6 || killed != 6 {
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
	if st, err := ReadKeeperState(state); err != nil || st.Phase != PhaseKept {
		t.Errorf("the keeper reported the end, and its state is %+v, %v", st, err)
	}
	pid := strings.TrimSpace(out())
	if !alive(t, pid) {
		t.Fatal("the kept process is gone")
	}
	p.Close() // the caller goes away; a kept session stays
	testkit.Stays(t, "the kept process lives after Close", func() bool { return alive(t, pid) })
	if err := syscall.Kill(p.KeeperPid, ReapSignal); err != nil {
		t.Fatal(err)
	}
	p.waitKeeper()
	if alive(t, pid) {
		t.Error("the kept process survived the reap")
	}
	st, err := ReadKeeperState(state)
	if err != nil || st.Phase != PhaseEmpty || st.Killed != 1 || st.Method&(MethodDomain|MethodSubtree) == 0 {
		t.Errorf("state %+v, %v", st, err)
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

// The keeper keeps only its own few descriptors, leaves the terminal session, and frees the
// heap.
func TestKeeperIsSmall(t *testing.T) {
	ballast := make([]byte, 32<<20)
	for i := range ballast {
		ballast[i] = byte(i)
	}
	p, _ := shell(t, &Keeper{}, "sleep 1000")
	defer func() { p.Kill(); finish(t, p) }()
	dir := fmt.Sprintf("/proc/%d", p.KeeperPid)
	if os.Getuid() == 0 {
		testkit.Eventually(t, "the keeper has two descriptors open", func() bool {
			fds, err := os.ReadDir(dir + "/fd")
			return err == nil && len(fds) == 2
		})
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
	testkit.Eventually(t, "the keeper has a session of its own", func() bool {
		sid, err := unix.Getsid(p.KeeperPid)
		return err == nil && sid == p.KeeperPid
	})
	if ballast[7] != 7 {
		t.Error("the caller's memory changed")
	}
}

// TestCallerGone: a keeper whose caller ends before it is ready starts nothing, and ends.
func TestCallerGone(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "ran")
	done := make(chan error, 1)
	go func() {
		_, err := Start(&Command{
			Path: "/usr/bin/touch", Args: []string{"touch", marker}, Keeper: &Keeper{},
			Commit: []func(*Process) error{(*Process).Close},
		})
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("started")
		}
	case <-time.After(testkit.Patience):
		t.Fatal("the keeper waits for ever")
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("the command ran all the same")
	}
}

// TestStoppedAfterItsLastWord: a keeper that was stopped before it ends is woken. The caller
// does not wait for one that never ends.
func TestStoppedAfterItsLastWord(t *testing.T) {
	for _, script := range []string{"kill -STOP $$", "while :; do kill -STOP $$; done"} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		end := os.NewFile(uintptr(pair[0]), "the keeper's end")
		c := exec.Command("/bin/sh", "-c", script)
		c.ExtraFiles = []*os.File{end}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		end.Close()
		p := &Process{KeeperPid: c.Process.Pid, conn: pair[1], ended: true}
		done := make(chan struct{})
		go func() { p.Close(); close(done) }()
		select {
		case <-done:
		case <-time.After(testkit.Patience):
			t.Errorf("%s: it waits for ever", script)
		}
		_ = syscall.Kill(c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
	}
}

// TestFamily: the walk to the keeper ends at a process of which it is known that it descends from
// the keeper, and not at another with the same number.
func TestFamily(t *testing.T) {
	c := exec.Command("sh", "-c", "sleep 1000 & echo $!; wait")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	child, parent := 0, c.Process.Pid
	_, err = fmt.Fscan(out, &child)
	defer func() {
		_ = syscall.Kill(child, syscall.SIGKILL)
		_ = c.Wait()
	}()
	if err != nil {
		t.Fatal(err)
	}
	proc, err := unix.Open("/proc", unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(proc)
	var mem Memory
	m := Put(&mem, keeperMem{keeper: os.Getpid()})
	if !m.below(proc, parent, 0) || m.below(proc, os.Getppid(), 0) {
		t.Fatal("a child is not found, or this process's parent is taken for one")
	}
	m.keeper = -1 // no walk gets there any more
	for range 2 { // the second walk ends at the child itself
		if !m.below(proc, child, 0) {
			t.Error("what is known of the parent is not used")
		}
	}
	m.family[uint32(child)%family] = kin{}
	m.family[uint32(parent)%family].start++
	if m.below(proc, child, 0) {
		t.Error("a process with the parent's number counts as the parent")
	}
}
