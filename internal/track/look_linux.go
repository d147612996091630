package track

import (
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

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
	if k := f.record.Keeper; v.Has(k) && v.Procs[k.Pid].Name == keeperName { // the record may be forged
		all = v.Below(f.record.Keeper.Pid)
	} else {
		for _, pid := range v.roots(f) {
			all = append(all, v.Procs[pid])
			if pid != 1 { // with Exec the command may be init, but not all below is the session's
				all = append(all, v.Below(pid)...)
			}
		}
		if g := f.group(); g != nil {
			for _, pid := range g.Pids() {
				all = append(all, v.Procs[pid])
			}
		}
	}
	seen := map[int]bool{0: true, os.Getpid(): true} // this process may look like the session's, too
	return slices.DeleteFunc(all, func(p Proc) bool {
		out := seen[p.Pid] || p.Dead()
		seen[p.Pid] = true
		return out
	})
}

// roots returns the processes whose environment names the session. A recorded pid does not
// count, except for a command that hides its environment, since a forged record could make the
// user's shell look like the session's command. Nothing of the session is older than its
// supervisor.
func (v *view) roots(f *found) []int {
	roots, c := slices.Clone(v.members(f.record.ID)), f.record.Command
	if _, hidden := proc.Getenv(c.Pid, SessionEnv); hidden && v.Has(c) {
		roots = append(roots, c.Pid)
	}
	return slices.DeleteFunc(roots, func(pid int) bool { return v.Procs[pid].Start < f.record.Self.Start })
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
// proof only if there is a control group that the command could not leave. Before it kills,
// walk stops processes, look by look, until none that it finds still runs. A fork bomb at its
// process limit replaces killed processes faster than they can be killed, but stopped ones
// still count and don't fork.
func (f *found) walk(ctx context.Context, r *Report) error {
	const patience = 100 // looks after which walk kills what it found all the same
	g, seen := f.group(), make(map[ProcID]bool)
	empty, still, looks, wait := 0, 0, 0, time.Millisecond
	for empty < 2 {
		v, err := newView()
		if err != nil {
			return err
		}
		ps, populated := v.procs(f), false
		for _, p := range ps {
			seen[p.ID] = true
		}
		if g != nil {
			r.addMethod("cgroup")
			if populated, err = g.Kill(); err != nil {
				return err
			}
		}
		looks++
		if empty++; len(ps) > 0 || populated {
			empty = 0
			if still++; signalAll(ps, unix.SIGSTOP) > 0 {
				still = 0
			}
			if ctx.Err() != nil { // the next Reap finds these stopped
				proc.Fill(ps)
				r.Survivors = ps
				break
			}
			if still < 2 && looks < patience {
				continue
			}
			if signalAll(ps, unix.SIGKILL) > 0 {
				r.addMethod("walk")
			}
			still, looks = 0, 0
		}
		proc.Pause(wait)
		wait = min(2*wait, 50*time.Millisecond)
	}
	r.Killed += len(seen) - len(r.Survivors)
	switch {
	case empty == 2 && g != nil && f.recorded() && !f.record.TrackOnly:
		r.prove(howCgroup)
	case r.Unproved == "":
		r.Unproved = "neither a keeper nor a control group is left: a process that changed its group, parent and environment can't be recognized"
	}
	return nil
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
