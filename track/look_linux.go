package track

import (
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// finder takes a snapshot in which sessions are found: what the keeper of one says,
// its processes if it belongs here, and whether its files are still there.
func finder() (func(f *found, here bool) (keeper Life, procs []Proc, there bool), error) {
	t, err := proc.Snapshot()
	if err != nil {
		return nil, err
	}
	var m members // read only if a session has no keeper: it costs a file for each process
	return func(f *found, here bool) (Life, []Proc, bool) {
		// The keeper's last word may have come after the first look.
		if !t.Has(f.record.Keeper) && !f.refresh() {
			return "", nil, false
		}
		if !here {
			return "", nil, true
		}
		if m == nil && !f.word.empty() && (!f.recorded || !t.Has(f.record.Keeper)) {
			m = readMembers(t)
		}
		f.findKeeper(t, m)
		return f.keeperLife(t), f.procsIn(t, m), true
	}, nil
}

// keeperLife asks the session's keeper, if it lives. A stopped one whose supervisor
// is gone was about to end the session, unless that is to be kept.
func (f *found) keeperLife(t *proc.Table) Life {
	hidden := f.word.locked && f.word.known && !t.Has(f.record.Supervisor) // it has the lock, and /proc does not show it (hidepid)
	switch k := f.record.Keeper; {
	case !t.Has(k) && (k.IsZero() || !hidden):
		return ""
	case !t.Has(k):
	case !f.recorded || f.record.Keep || f.word.state.Phase == fork.PhaseKept:
	case t.Procs[k.Pid].Stopped() && !t.Has(f.record.Supervisor):
		return Lost
	}
	return f.word.life()
}

// procs lists the session's living processes.
func (f *found) procs() ([]Proc, error) {
	t, err := proc.Snapshot()
	if err != nil {
		return nil, err
	}
	ps := f.procsIn(t, readMembers(t))
	proc.Fill(ps)
	return ps, nil
}

// procsIn lists them from a snapshot.
func (f *found) procsIn(t *proc.Table, m members) []Proc {
	if f.word.empty() {
		return nil
	}
	lives := t.Has(f.record.Keeper)
	var ps, more []Proc
	if !f.recorded || !lives { // which would tell whether the keeper is above or beside
		ps = f.targets().among(t, m)
	}
	if lives {
		more = t.Below(f.record.Keeper.Pid)
	} else if g := f.openGroup(); g != nil {
		pids, _ := g.Pids()
		g.Close()
		for _, pid := range pids {
			if p, ok := t.Procs[pid]; ok {
				more = append(more, p)
			}
		}
	}
	for _, p := range more {
		if !p.Dead() && !slices.ContainsFunc(ps, func(o Proc) bool { return o.Pid == p.Pid }) {
			ps = append(ps, p)
		}
	}
	return ps
}

// targets says which processes belong to a session that no keeper vouches for
// any more.
type targets struct {
	id      string
	command ProcID // its first process, which counts where its environment can't be read
	since   uint64 // nothing of the session started before this, in clock ticks since boot
}

// targets says how to tell the session's processes without a keeper.
func (f *found) targets() targets {
	return targets{id: f.dir.id, command: f.record.Command, since: f.record.Supervisor.Start}
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
// environment says so, and the descendants of these. This process is never one,
// whatever it looks like.
//
// A recorded pid is no reason, but for a process that hides its environment: a
// record that was tampered with could make the user's own shell look like the
// session's command.
func (g targets) among(t *proc.Table, m members) []Proc {
	roots := slices.Clone(m[g.id])
	if _, hidden := proc.Getenv(g.command.Pid, SessionEnv); hidden && t.Has(g.command) {
		roots = append(roots, g.command.Pid)
	}
	hit := make(map[int]bool)
	for _, pid := range roots {
		if hit[pid] || t.Procs[pid].Start < g.since {
			continue
		}
		hit[pid] = true
		if pid == 1 {
			continue // with Exec init may be the command, but not all is its
		}
		for _, p := range t.Below(pid) {
			hit[p.Pid] = true
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

// find takes a snapshot, and picks from it.
func (g targets) find() ([]Proc, error) {
	t, err := proc.Snapshot()
	if err != nil {
		return nil, err
	}
	return g.among(t, readMembers(t)), nil
}

// signalAll signals the targets, SIGSTOP to those that run, and gives the number
// of them.
func signalAll(g targets, sig unix.Signal) (int, error) {
	ps, err := g.find()
	n := 0
	for _, p := range ps {
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
	return n, err
}

// settleWalk kills what can be found until two looks in a row find nothing, or
// ctx is done. That is no proof.
func settleWalk(ctx context.Context, g targets, r *Report) error {
	clean := 0
	for wait := time.Millisecond; clean < 2; wait = min(2*wait, 50*time.Millisecond) {
		left, err := g.find()
		if err != nil {
			return err
		}
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
		time.Sleep(wait)
	}
	r.Unproved = "neither a keeper nor a control group is left: a process that changed its group, parent and environment can't be told from others"
	return nil
}
