package track

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// textbook is the loop that everybody writes first: kill what matches, until
// nothing does. It is here to show that these tests can tell it from one that
// works.
func textbook(t processTable, self int) {
	for range 200 {
		snap, _ := t.snapshot()
		found := false
		for _, r := range snap.rows {
			if r.zombie || r.Pid <= 1 || r.Pid == self {
				continue
			}
			a := t.probe(r.Pid)
			if a.pathAllow == allowed && a.pathDeny != allowed {
				found = true
				_ = t.signal(r.Pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

func hunter(k *simKernel) *hunt {
	return &hunt{table: k, self: k.self, limit: 2 * time.Second}
}

// check runs one schedule and holds the hunt to what it must never do.
func check(t interface{ Fatalf(string, ...any) }, h hazards, seed uint64) (*simKernel, huntResult, error) {
	k := newSimKernel(h, seed)
	begin := k.now()
	res, err := hunter(k).run(context.Background())
	if w := k.wronged(); len(w) > 0 {
		t.Fatalf("%+v, seed %d: outsiders came to harm: %v", h, seed, w)
	}
	alive := k.members()
	if err == nil && len(alive) > 0 {
		t.Fatalf("%+v, seed %d: success with %v alive after %d scans", h, seed, alive, res.scans)
	}
	if took := k.now().Sub(begin); took > 3*time.Second {
		t.Fatalf("%+v, seed %d: took %v", h, seed, took)
	}
	var le *leftError
	if err != nil && !errors.As(err, &le) {
		t.Fatalf("%+v, seed %d: %v", h, seed, err)
	}
	return k, res, err
}

// TestTextbookLoopFails is the control.
func TestTextbookLoopFails(t *testing.T) {
	h := hazards{pids: 400, outsiders: 40, hoppers: 1, hop: 50}
	wrong := 0
	for seed := range uint64(100) {
		k := newSimKernel(h, seed)
		textbook(k, k.self)
		if len(k.members()) > 0 {
			wrong++
		}
		check(t, h, seed)
	}
	if wrong < 50 {
		t.Errorf("the textbook loop left a survivor in %d of 100 runs only: the schedule proves nothing", wrong)
	}
	t.Logf("the textbook loop declared success with a survivor in %d of 100 runs", wrong)
}

// TestHuntEnds: where nothing stands in the way, everything is killed.
func TestHuntEnds(t *testing.T) {
	for name, h := range map[string]hazards{
		"nobody":              {pids: 100, outsiders: 20},
		"sleepers":            {pids: 400, outsiders: 50, sleepers: 50},
		"zombies":             {pids: 200, outsiders: 20, sleepers: 3, zombies: 10},
		"a hopper":            {pids: 400, outsiders: 40, hoppers: 1, hop: 10},
		"hoppers, few pids":   {pids: 60, outsiders: 20, hoppers: 3, hop: 10},
		"a racy list":         {pids: 400, outsiders: 40, hoppers: 1, hop: 10, racyList: true},
		"breeders":            {pids: 3000, outsiders: 20, breeders: 3, breed: 5},
		"a busy machine":      {pids: 500, outsiders: 30, churn: 20, sleepers: 5, hoppers: 1, hop: 5},
		"a mute name pair":    {pids: 400, outsiders: 40, hoppers: 1, hop: 10, mute: true},
		"deleted markers":     {pids: 400, outsiders: 40, sleepers: 10, noMarker: 1},
		"a nonsensical probe": {pids: 400, outsiders: 20, sleepers: 10, nonsense: 3},
	} {
		for seed := range uint64(40) {
			if _, res, err := check(t, h, seed); err != nil {
				t.Errorf("%s, seed %d: %v after %d scans", name, seed, err, res.scans)
			}
		}
	}
}

// TestPidReuse: pids are so few that one is in other hands as soon as it is
// free.
func TestPidReuse(t *testing.T) {
	for seed := range uint64(400) {
		check(t, hazards{pids: 28, outsiders: 20, churn: 200, hoppers: 2, hop: 250, tick: 4000}, seed)
		check(t, hazards{pids: 400, outsiders: 20, hoppers: 1, hop: 100, linger: 700, tick: 4000}, seed)
	}
}

// TestReuseBeforeStop: the member ends, and its pid goes to somebody else,
// right before the signal.
func TestReuseBeforeStop(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	h := hunter(k)
	h.table = &swapper{simKernel: k}
	if _, err := h.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if w := k.wronged(); len(w) > 0 {
		t.Errorf("%v came to harm", w)
	}
}

// swapper replaces the first member that is to be stopped.
type swapper struct {
	*simKernel
	done bool
}

func (s *swapper) signal(pid int, sig syscall.Signal) error {
	if p := s.procs[pid]; sig == syscall.SIGSTOP && !s.done && p != nil {
		s.done = true
		s.end(p)
		s.next = pid
		s.spawn(1, false, "")
	}
	return s.simKernel.signal(pid, sig)
}

// TestTwoCleanScans: one search that finds nothing is not enough.
func TestTwoCleanScans(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	h := hunter(k)
	h.table = &latecomer{simKernel: k}
	if _, err := h.run(context.Background()); err != nil || len(k.members()) > 0 {
		t.Errorf("%v; alive: %v", err, k.members())
	}
}

// latecomer leaves the members out of its first list.
type latecomer struct {
	*simKernel
	lists int
}

func (l *latecomer) snapshot() (snapshot, error) {
	s, err := l.simKernel.snapshot()
	if l.lists++; l.lists == 1 {
		s.rows = slices.DeleteFunc(s.rows, func(r row) bool { return l.procs[r.Pid].member })
	}
	return s, err
}

// TestHiddenProcesses shows why a snapshot has to count those that ended while
// it was made: a list that leaves them out without a word never shows a
// process that forks and exits fast enough.
func TestHiddenProcesses(t *testing.T) {
	wrong := 0
	for seed := range uint64(50) {
		h := hazards{pids: 400, outsiders: 40, hoppers: 1, hop: 300, racyList: true, tick: 1000}
		check(t, h, seed)
		h.hidden = true
		k := newSimKernel(h, seed)
		if _, err := hunter(k).run(context.Background()); err == nil && len(k.members()) > 0 {
			wrong++
		}
	}
	if wrong < 25 {
		t.Errorf("only %d of 50 searches were deceived", wrong)
	}
}

// TestHuntTellsSurvivors: what cannot be killed is named, soon and without
// end.
func TestHuntTellsSurvivors(t *testing.T) {
	for name, h := range map[string]hazards{
		"foreign":              {pids: 200, outsiders: 20, sleepers: 5, foreign: 2},
		"unkillable":           {pids: 200, outsiders: 20, sleepers: 5, unkillable: 2},
		"mute without markers": {pids: 200, outsiders: 20, sleepers: 5, mute: true, noMarker: 1},
	} {
		k, res, err := check(t, h, 7)
		var le *leftError
		if !errors.As(err, &le) {
			t.Fatalf("%s: %v", name, err)
		}
		var named []ProcID
		for _, s := range res.left {
			named = append(named, s.ProcID)
		}
		for _, p := range k.members() {
			if !slices.Contains(named, p) {
				t.Errorf("%s: %v is not named in %v", name, p, err)
			}
		}
		if name == "foreign" && res.scans > 10 {
			t.Errorf("%s: %d scans for processes that can't be signalled", name, res.scans)
		}
	}
}

// TestHuntRandom: thousands of schedules, as hostile as they come.
func TestHuntRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := func(name string, most int) int { return rapid.IntRange(0, most).Draw(rt, name) }
		h := hazards{
			pids:      rapid.SampledFrom([]int{40, 80, 250}).Draw(rt, "pids"),
			outsiders: n("outsiders", 20), churn: n("churn", 100),
			hoppers: n("hoppers", 3), hop: n("hop", 500),
			breeders: n("breeders", 2), breed: n("breed", 20), sleepers: n("sleepers", 4), zombies: n("zombies", 2),
			foreign: n("foreign", 1), unkillable: n("unkillable", 1), nonsense: n("nonsense", 200),
			mute: rapid.Bool().Draw(rt, "mute"), noMarker: n("noMarker", 400), racyList: rapid.Bool().Draw(rt, "racyList"),
			tick: 4000, linger: n("linger", 1000),
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		for i := range uint64(40) {
			check(rt, h, seed+i)
		}
	})
}

// TestReferenceNeverMatches: a probe that claims everybody ends the search
// before anybody comes to harm.
func TestReferenceNeverMatches(t *testing.T) {
	for name, c := range map[string]struct {
		claims func(k *simKernel, pid int) bool
		want   error
	}{
		"everybody":      {func(*simKernel, int) bool { return true }, errInside},
		"this process":   {func(k *simKernel, pid int) bool { return pid == k.self }, errInside},
		"process 1":      {func(_ *simKernel, pid int) bool { return pid == 1 }, errReference},
		"all but itself": {func(k *simKernel, pid int) bool { return pid != k.self }, errReference},
	} {
		k := newSimKernel(hazards{pids: 100, outsiders: 20, sleepers: 3}, 1)
		h := hunter(k)
		h.table = &liar{k, c.claims}
		if _, err := h.run(context.Background()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if w := k.wronged(); len(w) > 0 {
			t.Errorf("%s: %v came to harm", name, w)
		}
	}
}

// liar claims members.
type liar struct {
	*simKernel
	claims func(*simKernel, int) bool
}

func (l *liar) probe(pid int) answers {
	if l.claims(l.simKernel, pid) {
		return answers{1, allowed, denied, allowed, denied}
	}
	return l.simKernel.probe(pid)
}

// TestCommandIsAMember: the first process is found before it has put its
// profile on, but not if its pid belongs to another one.
func TestCommandIsAMember(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10}, 3)
	command := k.spawn(k.self, false, "")
	h := hunter(k)
	h.command = command.ProcID
	h.group = command.Pid
	if _, err := h.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.killedOut, []ProcID{command.ProcID}) {
		t.Errorf("killed: %v, want the command alone", k.killedOut)
	}
	other := newSimKernel(hazards{pids: 100, outsiders: 10}, 3)
	reused := other.spawn(other.self, false, "")
	h = hunter(other)
	h.command = ProcID{reused.Pid, reused.Start - 1}
	h.group = reused.Pid
	if _, err := h.run(context.Background()); err != nil || len(other.wronged()) > 0 {
		t.Errorf("%v; %v came to harm", err, other.wronged())
	}
}

// TestProbeOfItselfMustAnswer: a probe that is silent about everybody proves
// nothing.
func TestProbeOfItselfMustAnswer(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	h := hunter(k)
	h.table = silent{k}
	h.began = k.clock + 1 // everybody is older: the scans would be clean
	var le *leftError
	if _, err := h.run(context.Background()); !errors.As(err, &le) {
		t.Errorf("%v", err)
	}
}

type silent struct{ *simKernel }

func (silent) probe(int) answers { return answers{-1, -1, -1, -1, -1} }

// TestOldProcessesNeedNoAnswer: a process that never answers and is older than
// the session does not stand in the way.
func TestOldProcessesNeedNoAnswer(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	old := k.spawn(1, false, "")
	h := hunter(k)
	h.table = mutePid{k, old.Pid}
	if _, err := h.run(context.Background()); err == nil {
		t.Error("a process that gives no answer was taken for an outsider")
	}
	h.began = old.Start + 1
	if _, err := h.run(context.Background()); err != nil {
		t.Error(err)
	}
}

type mutePid struct {
	*simKernel
	pid int
}

func (m mutePid) probe(pid int) answers {
	if pid == m.pid {
		return answers{-1, -1, -1, -1, -1}
	}
	return m.simKernel.probe(pid)
}

// TestCancelled: a caller that gives up gets no success.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	if _, err := hunter(k).run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestVerdict goes through all answers.
func TestVerdict(t *testing.T) {
	values := []int{-1, 0, 1, 2}
	for _, sandboxed := range values {
		for _, na := range values {
			for _, nd := range values {
				for _, pa := range values {
					for _, pd := range values {
						a := answers{sandboxed, na, nd, pa, pd}
						for _, markers := range []bool{false, true} {
							got := a.verdict(markers)
							if got != member {
								continue
							}
							byName := na == 0 && nd == 1
							byPath := markers && pa == 0 && pd == 1 && (na != 0 && na != 1 || nd != 0 && nd != 1)
							if sandboxed != 1 || !byName && !byPath {
								t.Errorf("%+v, markers %v: a match", a, markers)
							}
						}
					}
				}
			}
		}
	}
	for _, c := range []struct {
		a    answers
		want verdict
	}{
		{answers{0, -1, -1, -1, -1}, outside}, // under no profile
		{answers{1, 0, 1, -1, -1}, member},
		{answers{1, 1, 1, 1, 1}, outside}, // another profile, or dead
		{answers{1, 0, 0, 0, 1}, outside}, // allows all, and a marker is missing
		{answers{1, -1, -1, 0, 1}, member},
		{answers{-1, 0, 1, 0, 1}, unclear},
		{answers{0, 0, 1, 0, 1}, unclear},
	} {
		if got := c.a.verdict(true); got != c.want {
			t.Errorf("%+v: %v, want %v", c.a, got, c.want)
		}
	}
}
