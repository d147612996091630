package track

import (
	"context"
	"os"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track/internal/proc"
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
}

// targets says how to tell the session's processes without a keeper.
func (f *found) targets() targets {
	g := targets{id: f.dir.id, command: f.holder.Command}
	if f.record != nil {
		g.since = f.record.Supervisor.Start
	}
	// The record's word is not enough: where a command could write one, it
	// could name the group of the user's shell. The leader's own environment
	// must say the same.
	if c := f.holder.Command; f.holder.Tracker == Group && c.Start != 0 && sessionOf(c.Pid) == f.dir.id {
		g.group = c.Pid
		g.since = max(g.since, c.Start)
	}
	return g
}

// members tells which processes say of themselves, by the environment that
// they were started with, that they belong to a session.
type members map[string][]int

func readMembers(t *proc.Table) members {
	m := make(members)
	for pid := range t.Procs {
		if id := sessionOf(pid); id != "" {
			m[id] = append(m[id], pid)
		}
	}
	return m
}

// among picks the session's living processes from a snapshot: those whose
// environment says so, those of its group, and the descendants of all these. m may
// be nil. This process is never one, whatever it looks like.
//
// A recorded pid is no reason, but for a process that hides its environment: a
// record that was tampered with could make the user's own shell look like the
// session's command.
func (g targets) among(t *proc.Table, m members) []Proc {
	if m == nil {
		m = readMembers(t)
	}
	roots := slices.Clone(m[g.id])
	if _, hidden := proc.Getenv(g.command.Pid, SessionEnv); hidden && t.Has(g.command) {
		roots = append(roots, g.command.Pid)
	}
	for pid, p := range t.Procs {
		if g.group > 0 && p.Group == g.group {
			roots = append(roots, pid)
		}
	}
	hit := make(map[int]bool)
	for _, pid := range roots {
		if pid > 1 && !hit[pid] && t.Procs[pid].Start >= g.since {
			hit[pid] = true
			for _, p := range t.Below(pid) {
				hit[p.Pid] = true
			}
		}
	}
	var out []Proc
	for pid := range hit {
		if p := t.Procs[pid]; pid != os.Getpid() && !p.Dead() {
			out = append(out, p)
		}
	}
	return out
}

// killAll kills all targets that can be found. It stops them first, look by look,
// until none that it finds runs any more: a fork bomb that meets its limit is
// quicker than any killer who gives it room by killing, but what is stopped
// takes up room and makes no more. It gives the number of processes killed.
func killAll(ctx context.Context, g targets) (int, error) {
	const looks = 100
	for clean, n := 0, 0; clean < 2 && n < looks && ctx.Err() == nil; n++ {
		running, err := signalAll(g, unix.SIGSTOP)
		if err != nil {
			return 0, err
		}
		if clean++; running > 0 {
			clean = 0
		}
	}
	return signalAll(g, unix.SIGKILL)
}

// signalAll signals the targets, SIGSTOP to those that run, and gives the number
// of them.
func signalAll(g targets, sig unix.Signal) (int, error) {
	t, err := proc.Snapshot()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, p := range g.among(t, nil) {
		if sig == unix.SIGSTOP && p.Stopped() {
			continue
		}
		h, err := proc.Open(p.ID)
		if err != nil {
			continue // gone, or forked on: the next look tells
		}
		if err := h.Signal(sig); err == nil {
			n++
		}
		h.Close()
	}
	return n, nil
}

// settleWalk kills what can be found until two looks in a row find nothing, or
// ctx is done. That is no proof.
func settleWalk(ctx context.Context, g targets, r *Report) error {
	clean := 0
	for wait := time.Millisecond; clean < 2; wait = min(2*wait, 50*time.Millisecond) {
		t, err := proc.Snapshot()
		if err != nil {
			return err
		}
		left := g.among(t, nil)
		if clean++; len(left) > 0 {
			clean = 0
			if ctx.Err() != nil {
				proc.Fill(left)
				r.Survivors = left
				break
			}
			n, err := killAll(ctx, g)
			if err != nil {
				return err
			}
			r.Killed += n
			r.addMethods("walk")
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
