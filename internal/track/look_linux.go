package track

import (
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/track/cgroup"
	"github.com/zsbx/zsbx/internal/track/proc"
)

// sessionOf returns the session in the environment that pid was started with, or "".
func sessionOf(pid int) string {
	id, _ := proc.Getenv(pid, SessionEnv)
	return id
}

// members returns the processes whose environment says that they belong to a session. It reads
// a file for each process, so it is called only if a session has no keeper.
func (v *view) members(id string) []int {
	if v.started == nil {
		v.started = make(map[string][]int)
		for pid := range v.Procs {
			if id := sessionOf(pid); id != "" {
				v.started[id] = append(v.started[id], pid)
			}
		}
	}
	return v.started[id]
}

// procs returns the session's living processes: those below its keeper. Without a keeper they
// are the members of its control group, those whose environment names the session, and their
// descendants.
func (v *view) procs(f *found) []Proc {
	var all []Proc
	keeper := f.record.Keeper
	if v.Has(keeper) && v.Procs[keeper.Pid].Name == keeperName { // the record may be forged
		all = v.Below(keeper.Pid)
	} else {
		all = v.procsWithoutKeeper(f)
	}
	seen := map[int]bool{0: true, os.Getpid(): true} // this process may look like the session's, too
	return slices.DeleteFunc(all, func(p Proc) bool {
		out := seen[p.Pid] || p.Dead()
		seen[p.Pid] = true
		return out
	})
}

// procsWithoutKeeper may return a process more than once.
func (v *view) procsWithoutKeeper(f *found) (all []Proc) {
	for _, pid := range v.roots(f) {
		all = append(all, v.Procs[pid])
		if pid != 1 { // with Exec the command may be init, but not all below is the session's
			all = append(all, v.Below(pid)...)
		}
	}
	g := f.group()
	if g == nil {
		return all
	}
	for _, pid := range g.Pids() {
		all = append(all, v.Procs[pid])
	}
	return all
}

// roots returns the processes whose environment names the session. A recorded pid does not
// count, except for a command that hides its environment, since a forged record could make the
// user's shell look like the session's command. Nothing of the session is older than its
// supervisor.
func (v *view) roots(f *found) []int {
	roots := slices.Clone(v.members(f.record.ID))
	c := f.record.Command
	if _, hidden := proc.Getenv(c.Pid, SessionEnv); hidden && v.Has(c) {
		roots = append(roots, c.Pid)
	}
	return slices.DeleteFunc(roots, func(pid int) bool { return v.Procs[pid].Start < f.record.Supervisor.Start })
}

// procs returns the session's living processes, with their arguments.
func (f *found) procs() ([]Proc, error) {
	v, err := newView()
	if err != nil {
		return nil, err
	}
	ps := v.procs(f)
	proc.Fill(ps)
	return ps, nil
}

// walk kills what it can find until two looks in a row find nothing, or ctx is done. That is a
// proof only if there is a control group that the command could not leave.
func (f *found) walk(ctx context.Context, r *Report) error {
	h := hunt{found: f, report: r, group: f.group(), seen: make(map[ProcID]bool)}
	wait := time.Millisecond
	empty := 0 // looks in a row that found nothing
	for empty < 2 && !h.over {
		ps, populated, err := h.look()
		if err != nil {
			return err
		}
		empty++
		if len(ps) > 0 || populated {
			empty = 0
			if !h.kill(ctx, ps) {
				continue
			}
		}
		proc.Pause(wait)
		wait = min(2*wait, 50*time.Millisecond)
	}
	r.Killed += len(h.seen) - len(r.Survivors)
	proved := empty == 2 && h.group != nil && f.recorded() && !f.record.TrackOnly
	if proved {
		r.prove(howCgroup)
	} else if r.Unproved == "" {
		r.Unproved = unprovedWalk
	}
	return nil
}

// unprovedWalk says what walk can't know.
const unprovedWalk = "no keeper is left, and no control group that the command could not leave, " +
	"so a process that daemonized and cleared its environment may have been missed"

// hunt is the state of a walk. Before it kills, it stops processes, look by look, until none
// that it finds still runs. A fork bomb at its process limit replaces killed processes faster
// than they can be killed, but stopped ones still count and don't fork.
type hunt struct {
	*found
	report *Report
	group  *cgroup.Group // the session's, or nil
	seen   map[ProcID]bool
	looks  int  // since it last killed
	still  int  // looks in a row for which nothing had to be stopped
	over   bool // the time is up
}

// patience is the number of looks after which a hunt kills what it found all the same.
const patience = 100

// look finds the session's processes, and kills its control group. populated reports whether
// the group had members.
func (h *hunt) look() (ps []Proc, populated bool, _ error) {
	v, err := newView()
	if err != nil {
		return nil, false, err
	}
	h.looks++
	ps = v.procs(h.found)
	for _, p := range ps {
		h.seen[p.ID] = true
	}
	if h.group != nil {
		h.report.addMethod("cgroup")
		populated, err = h.group.Kill()
	}
	return ps, populated, err
}

// kill stops processes, and kills them if all had been stopped before. It reports whether it
// did. If the time is up, it leaves them stopped, and the next Reap finds them.
func (h *hunt) kill(ctx context.Context, ps []Proc) bool {
	h.still++
	if signalAll(ps, unix.SIGSTOP) > 0 {
		h.still = 0
	}
	if ctx.Err() != nil {
		proc.Fill(ps)
		h.report.Survivors = ps
		h.over = true
		return false
	}
	if h.still < 2 && h.looks < patience {
		return false
	}
	if signalAll(ps, unix.SIGKILL) > 0 {
		h.report.addMethod("walk")
	}
	h.still = 0
	h.looks = 0
	return true
}

// signalAll signals processes and returns how many. It sends SIGSTOP only to those that run.
func signalAll(ps []Proc, sig unix.Signal) (n int) {
	for _, p := range ps {
		if sig == unix.SIGSTOP && p.Stopped() {
			continue
		}
		h, err := proc.Open(p.ID)
		if err != nil {
			continue // gone; the next look finds its children
		}
		if err := h.Signal(sig); err == nil {
			n++
		}
		h.Close()
	}
	return n
}
