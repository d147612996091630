package scan

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zsbx/zsbx/internal/track/proc"
)

// textbook is the obvious loop: kill what matches until nothing does. It shows that these tests
// can distinguish it from one that works.
func textbook(t Table, self int) {
	for range 200 {
		rows, _ := t.Snapshot()
		found := false
		for _, r := range rows {
			if r.Dead() || r.Pid <= 1 || r.Pid == self {
				continue
			}
			a := t.Probe(r.Pid)
			if a.Allow == Allowed && a.Deny != Allowed {
				found = true
				_ = t.Signal(r.Pid, syscall.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}

func searcher(k *simKernel) *Search {
	return &Search{Table: k, Self: k.self, Limit: 2 * time.Second}
}

// check runs one schedule and fails the test if the search does what it must never do.
func check(t interface{ Fatalf(string, ...any) }, h hazards, seed uint64) (*simKernel, *Search, error) {
	k := newSimKernel(h, seed)
	begin := k.Now()
	res := searcher(k)
	err := res.Run(context.Background())
	if w := k.wronged(); len(w) > 0 {
		t.Fatalf("%+v, seed %d: outsiders came to harm: %v", h, seed, w)
	}
	alive := k.members()
	if err == nil && len(alive) > 0 {
		t.Fatalf("%+v, seed %d: success with %v alive after %d scans", h, seed, alive, res.scans)
	}
	if took := k.Now().Sub(begin); took > 3*time.Second {
		t.Fatalf("%+v, seed %d: took %v", h, seed, took)
	}
	if err != nil && !errors.Is(err, ErrUnproved) {
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

// TestSearchEnds: without obstacles everything is killed.
func TestSearchEnds(t *testing.T) {
	for name, h := range map[string]hazards{
		"nobody":              {pids: 100, outsiders: 20},
		"sleepers":            {pids: 400, outsiders: 50, sleepers: 50},
		"zombies":             {pids: 200, outsiders: 20, sleepers: 3, zombies: 10},
		"a hopper":            {pids: 400, outsiders: 40, hoppers: 1, hop: 10},
		"hoppers, few pids":   {pids: 60, outsiders: 20, hoppers: 3, hop: 10},
		"a racy list":         {pids: 400, outsiders: 40, hoppers: 1, hop: 10, racyList: true},
		"breeders":            {pids: 3000, outsiders: 20, breeders: 3, breed: 5},
		"a busy machine":      {pids: 500, outsiders: 30, churn: 20, sleepers: 5, hoppers: 1, hop: 5},
		"a nonsensical probe": {pids: 400, outsiders: 20, sleepers: 10, nonsense: 3},
	} {
		for seed := range uint64(40) {
			if _, res, err := check(t, h, seed); err != nil {
				t.Errorf("%s, seed %d: %v after %d scans", name, seed, err, res.scans)
			}
		}
	}
}

// TestPidReuse: pids are so few that each is reused as soon as it is free.
func TestPidReuse(t *testing.T) {
	for seed := range uint64(400) {
		check(t, hazards{pids: 28, outsiders: 20, churn: 200, hoppers: 2, hop: 250, tick: 4000}, seed)
		check(t, hazards{pids: 400, outsiders: 20, hoppers: 1, hop: 100, linger: 700, tick: 4000}, seed)
	}
}

// TestReuseBeforeStop: right before the signal the member ends and another process gets its
// pid.
func TestReuseBeforeStop(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	h := searcher(k)
	h.Table = &swapper{simKernel: k}
	if err := h.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if w := k.wronged(); len(w) > 0 {
		t.Errorf("%v came to harm", w)
	}
}

// swapper replaces the first member that will be stopped.
type swapper struct {
	*simKernel
	done bool
}

func (s *swapper) Signal(pid int, sig syscall.Signal) error {
	if p := s.procs[pid]; sig == syscall.SIGSTOP && !s.done && p != nil {
		s.done = true
		s.end(p)
		s.next = pid
		s.spawn(1, false, "")
	}
	return s.simKernel.Signal(pid, sig)
}

// TestTwoCleanScans: one search that finds nothing is not enough.
func TestTwoCleanScans(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	h := searcher(k)
	h.Table = &latecomer{simKernel: k}
	if err := h.Run(context.Background()); err != nil || len(k.members()) > 0 {
		t.Errorf("%v; alive: %v", err, k.members())
	}
}

// latecomer leaves the members out of its first list.
type latecomer struct {
	*simKernel
	lists int
}

func (l *latecomer) Snapshot() ([]proc.Process, error) {
	rows, err := l.simKernel.Snapshot()
	l.lists++
	if l.lists == 1 {
		rows = slices.DeleteFunc(rows, func(r proc.Process) bool { return l.procs[r.Pid].member })
	}
	return rows, err
}

// TestHiddenProcesses shows why a snapshot must count processes that ended while it was made: a
// list that silently omits them never shows a process that forks and exits fast enough.
func TestHiddenProcesses(t *testing.T) {
	wrong := 0
	for seed := range uint64(50) {
		h := hazards{pids: 400, outsiders: 40, hoppers: 1, hop: 300, racyList: true, tick: 1000}
		check(t, h, seed)
		h.hidden = true
		k := newSimKernel(h, seed)
		if err := searcher(k).Run(context.Background()); err == nil && len(k.members()) > 0 {
			wrong++
		}
	}
	if wrong < 25 {
		t.Errorf("only %d of 50 searches were deceived", wrong)
	}
}

// TestSearchTellsSurvivors: what can't be killed is reported, and the search ends soon.
func TestSearchTellsSurvivors(t *testing.T) {
	for name, h := range map[string]hazards{
		"foreign":    {pids: 200, outsiders: 20, sleepers: 5, foreign: 2},
		"unkillable": {pids: 200, outsiders: 20, sleepers: 5, unkillable: 2},
		"mute":       {pids: 200, outsiders: 20, sleepers: 5, mute: true},
	} {
		k, res, err := check(t, h, 7)
		if !errors.Is(err, ErrUnproved) {
			t.Fatalf("%s: %v", name, err)
		}
		var named []proc.ID
		for _, s := range res.Left {
			named = append(named, s.ID)
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

// TestSearchRandom: thousands of hostile schedules.
func TestSearchRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := func(name string, most int) int { return rapid.IntRange(0, most).Draw(rt, name) }
		h := hazards{
			pids:      rapid.SampledFrom([]int{40, 80, 250}).Draw(rt, "pids"),
			outsiders: n("outsiders", 20), churn: n("churn", 100),
			hoppers: n("hoppers", 3), hop: n("hop", 500),
			breeders: n("breeders", 2), breed: n("breed", 20), sleepers: n("sleepers", 4), zombies: n("zombies", 2),
			foreign: n("foreign", 1), unkillable: n("unkillable", 1), nonsense: n("nonsense", 200),
			mute: rapid.Bool().Draw(rt, "mute"), racyList: rapid.Bool().Draw(rt, "racyList"),
			tick: 4000, linger: n("linger", 1000),
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		for i := range uint64(40) {
			check(rt, h, seed+i)
		}
	})
}

// TestProbeOfItselfMustAnswer: a probe that never answers proves nothing.
func TestProbeOfItselfMustAnswer(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	h := searcher(k)
	h.Table = silent{k}
	h.Began = k.clock + 1 // all processes are older, so the scans would be clean
	if err := h.Run(context.Background()); !errors.Is(err, ErrUnproved) {
		t.Errorf("%v", err)
	}
}

type silent struct{ *simKernel }

func (silent) Probe(int) Answers { return Answers{-1, -1, -1} }

// TestOldProcessesNeedNoAnswer: a process that never answers but is older than the session does
// not prevent the proof.
func TestOldProcessesNeedNoAnswer(t *testing.T) {
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	old := k.spawn(1, false, "")
	h := searcher(k)
	h.Table = mutePid{k, old.Pid}
	if err := h.Run(context.Background()); err == nil {
		t.Error("a process that gives no answer was taken for an outsider")
	}
	h.Began = old.Start + 1
	if err := h.Run(context.Background()); err != nil {
		t.Error(err)
	}
}

type mutePid struct {
	*simKernel
	pid int
}

func (m mutePid) Probe(pid int) Answers {
	if pid == m.pid {
		return Answers{-1, -1, -1}
	}
	return m.simKernel.Probe(pid)
}

// TestCancelled: a cancelled search returns an error.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	k := newSimKernel(hazards{pids: 100, outsiders: 10, sleepers: 2}, 3)
	if err := searcher(k).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
