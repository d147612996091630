package broker

import "testing"

// TestDescends: a process outside never passes for one of the session, whenever
// its parents end and whoever gets their numbers.
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
	// After each number of questions: the outsider ends, a member gets its
	// number, and its child goes to init or, if that ends too, to a member.
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
	id, ok := parseParty([]byte("Name:\tx\nUid:\t1\t2\t3\t4\nCapEff:\t0000000000000020\n"))
	if want := (party{1, 2, 3, 1 << capabilityKill}); !ok || id != want {
		t.Errorf("%+v %v", id, ok)
	}
	if _, ok := parseParty(nil); ok {
		t.Error("nothing is somebody")
	}
	user := party{uid: 5, euid: 5, suid: 5}
	for _, tt := range []struct {
		who, whom party
		want      bool
	}{
		{user, user, true}, {user, party{}, false}, {party{}, user, false}, {id, user, true},
		{user, party{uid: 0, euid: 0, suid: 5}, true}, {user, party{uid: 0, euid: 5, suid: 0}, false},
	} {
		if got := tt.who.maySignal(tt.whom); got != tt.want {
			t.Errorf("%+v to %+v: %v", tt.who, tt.whom, got)
		}
	}
}
