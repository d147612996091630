package broker

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// TestDescends: a process outside never passes as one of the session, whenever its parents end
// and whichever processes get their numbers.
func TestDescends(t *testing.T) {
	const top, member, outsider = 10, 20, 50
	still := map[int]int{top: 1, member: top, 21: member, 51: outsider, outsider: 1, 30: 31, 31: 30}
	ask := func(at map[int]int) func(int) (int, bool) {
		return func(pid int) (int, bool) { up, ok := at[pid]; return up, ok }
	}
	for pid, want := range map[int]bool{member: true, 21: true, top: true, outsider: false, 51: false, 30: false, 99: false, 1: false} {
		if got := descends(pid, top, ask(still)); got != want {
			t.Errorf("%d: %v", pid, got)
		}
	}
	// After this many questions the outsider ends and a member gets its number. Its child goes
	// to init or, if that ends, too, to a member.
	for when := range 8 {
		for _, child := range []int{1, member} {
			n := 0
			got := descends(51, top, func(pid int) (int, bool) {
				n++
				if n <= when {
					up, ok := still[pid]
					return up, ok
				}
				// 51 itself is pinned: its number is not used again.
				up, ok := map[int]int{51: 1, outsider: member, member: top, 30: child}[pid]
				return up, ok
			})
			if got {
				t.Errorf("changed after %d questions: taken for a member", when)
			}
		}
	}
}

func TestMaySignal(t *testing.T) {
	id, ok := parseStatus(procfs.Status("Name:\tx\nUid:\t1\t2\t3\t4\nCapEff:\t0000000000000020\n"))
	if !ok || id.uid != 1 || id.identity.uid != 2 || id.suid != 3 || id.identity.fsuid != 4 || id.identity.capabilities != 1<<unix.CAP_KILL {
		t.Errorf("%+v %v", id, ok)
	}
	for _, bad := range []string{"", "Uid:\t1\t2\t3\n", "Uid:\t1\t2\tx\t4\n"} {
		if _, ok := parseStatus(procfs.Status(bad)); ok {
			t.Errorf("%q is somebody", bad)
		}
	}
	user := func(uid, euid, suid int) status { return status{uid: uid, suid: suid, identity: identity{uid: euid}} }
	for _, tt := range []struct {
		who, whom status
		want      bool
	}{
		{user(5, 5, 5), user(5, 5, 5), true}, {user(5, 5, 5), user(0, 0, 0), false}, {user(0, 0, 0), user(5, 5, 5), false},
		{id, user(5, 5, 5), true}, {user(5, 5, 5), user(0, 0, 5), true}, {user(5, 5, 5), user(0, 5, 0), false},
	} {
		if got := tt.who.maySignal(&tt.whom); got != tt.want {
			t.Errorf("%+v to %+v: %v", tt.who, tt.whom, got)
		}
	}
}

// TestSameProcess: the kernel never continues with a number that a process outside may have
// got, such as that of a sibling thread, which can end.
func TestSameProcess(t *testing.T) {
	threads, end := make(chan int), make(chan bool)
	defer close(end)
	var beside []int // the process's first thread, which has its number
	for len(beside) < 2 {
		go func() {
			runtime.LockOSThread()
			threads <- unix.Gettid()
			<-end
		}()
		if tid := <-threads; tid != os.Getpid() {
			beside = append(beside, tid)
		}
	}
	tid, sibling := beside[0], beside[1]
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", sibling, tid)); err != nil {
		t.Fatalf("control: the kernel does not take a thread's number for the process: %v", err)
	}
	s := &signalCall{Call: &Call{broker: &Broker{queue: *faultyQueue(new([]response))}, from: caller{tid: tid}}}
	for pid, want := range map[int]bool{tid: true, os.Getpid(): true, sibling: false, os.Getppid(): false, 0: false, -1: false} {
		if got := s.sameProcess(pid); got != want {
			t.Errorf("%d: %v", pid, got)
		}
		if got := s.ifSameProcess(pid, false).proceed; got != want {
			t.Errorf("F_SETOWN to %d: %v", pid, got)
		}
		if got := s.ifSameProcess(pid, true).proceed; got != (want || pid == sibling) {
			t.Errorf("sched_setaffinity of %d: %v", pid, got)
		}
	}
}
