package track

import (
	"context"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// addr is the address of b on the heap.
func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(&b[0])) }

// targets says which processes belong to a session that no keeper vouches for
// any more.
type targets struct {
	id      string
	group   int    // a process group that is the session's, 0 for none
	command ProcID // its first process, which counts where its environment can't be read
	since   uint64 // nothing of the session started before this, in clock ticks since boot
	not     int    // this process itself, whatever it looks like
}

// members tells which processes say of themselves, by the environment that
// they were started with, that they belong to a session.
type members map[string][]int

func readMembers(t table) members {
	m := make(members)
	for pid := range t {
		if id := sessionOf(pid); id != "" {
			m[id] = append(m[id], pid)
		}
	}
	return m
}

// among picks the session's living processes from a snapshot: those whose
// environment says so, those of its group, and the descendants of all these.
//
// A recorded pid is no reason, but for a process that hides its environment: a
// record that was tampered with could make the user's own shell look like the
// session's command.
func (g targets) among(t table, children map[int][]int, m members) []Proc {
	if m == nil {
		m = readMembers(t)
	}
	hit := make(map[int]bool)
	mark := func(pid int) {
		if p := t[pid]; pid <= 1 || hit[pid] || p.Start < g.since {
			return
		}
		hit[pid] = true
		for _, p := range t.below(pid, children) {
			hit[p.Pid] = true
		}
	}
	for _, pid := range m[g.id] {
		mark(pid)
	}
	if t.has(g.command) && secretive(g.command.Pid) {
		mark(g.command.Pid)
	}
	for pid, p := range t {
		if g.group > 0 && p.Group == g.group {
			mark(pid)
		}
	}
	var out []Proc
	for pid := range hit {
		if p := t[pid]; pid != g.not && !p.dead() {
			out = append(out, p)
		}
	}
	return out
}

// pick chooses processes from a snapshot.
type pick func(t table, children map[int][]int) []Proc

func (g targets) pick(t table, children map[int][]int) []Proc { return g.among(t, children, nil) }

// strike kills all that pick finds. It stops them first, look by look, until
// nothing that it finds runs any more: a fork bomb that meets its limit is
// quicker than any killer who gives it room by killing, but what is stopped
// takes up room and makes no more. It gives the number of processes killed.
func strike(ctx context.Context, find pick) (int, error) {
	const looks = 100
	for clean, n := 0, 0; clean < 2 && n < looks && ctx.Err() == nil; n++ {
		running, err := signalAll(find, unix.SIGSTOP, Proc.running)
		if err != nil {
			return 0, err
		}
		if running > 0 {
			clean = 0
		} else {
			clean++
		}
	}
	return signalAll(find, unix.SIGKILL, nil)
}

// running reports whether a process could still make others.
func (p Proc) running() bool { return p.State != "T" && p.State != "t" && !p.dead() }

// signalAll signals what find gives and only does not leave out, and tells how
// many that were.
func signalAll(find pick, sig unix.Signal, only func(Proc) bool) (int, error) {
	t, err := readTable()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range find(t, t.children()) {
		if only != nil && !only(p) {
			continue
		}
		h, err := openProc(p.ProcID)
		if err != nil {
			continue // gone, or forked on: the next look tells
		}
		if err := h.signal(sig); err == nil {
			n++
		}
		h.close()
	}
	return n, nil
}

// settleWalk kills what can be found until two looks in a row find nothing, or
// ctx is done. That is no proof.
func settleWalk(ctx context.Context, g targets, r *Report) error {
	g.not = os.Getpid()
	clean := 0
	for wait := time.Millisecond; clean < 2; wait = min(2*wait, 50*time.Millisecond) {
		t, err := readTable()
		if err != nil {
			return err
		}
		left := g.pick(t, t.children())
		if len(left) == 0 {
			clean++
		} else {
			clean = 0
			if ctx.Err() != nil {
				fill(left)
				r.Survivors = left
				break
			}
			n, err := strike(ctx, g.pick)
			if err != nil {
				return err
			}
			r.Killed += n
			r.addMethod("walk")
		}
		sleep(ctx, wait)
	}
	r.Unproved = "neither a keeper nor a control group is left: a process that changed its group, parent and environment can't be told from others"
	return nil
}

// sleep waits for d or until ctx is done, but a millisecond at least.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		time.Sleep(time.Millisecond)
	}
}
