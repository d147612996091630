package track

import (
	"context"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// sessionOf gives the session that the environment which pid was started with
// names, "" if none.
func sessionOf(pid int) string {
	id, _ := proc.Getenv(pid, SessionEnv)
	return id
}

// members tells which processes say of themselves, by the environment that they were
// started with, that they belong to a session. It is read only if a session has no
// keeper: it costs a file for each process.
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

// procs lists the session's living processes: what is below its keeper. Without one
// it is what the control group has, what says that it is the session's, and the
// descendants of these.
func (v *view) procs(f *found) []Proc {
	var all []Proc
	if k := f.record.Keeper; v.Has(k) && v.Procs[k.Pid].Name == keeperName { // whatever the record says
		all = v.Below(f.record.Keeper.Pid)
	} else {
		for _, pid := range v.roots(f) {
			all = append(all, v.Procs[pid])
			if pid != 1 { // with Exec init may be the command, but not all is its
				all = append(all, v.Below(pid)...)
			}
		}
		if g := f.group(); g != nil {
			for _, pid := range g.Pids() {
				all = append(all, v.Procs[pid])
			}
		}
	}
	seen := map[int]bool{0: true, os.Getpid(): true} // whatever this one looks like
	return slices.DeleteFunc(all, func(p Proc) bool {
		out := seen[p.Pid] || p.Dead()
		seen[p.Pid] = true
		return out
	})
}

// roots are the processes that say that they are the session's. A recorded pid is no
// reason, but for a command that hides its environment: a record that was tampered
// with could make the user's own shell look like the session's command. Nothing of the
// session is older than its supervisor.
func (v *view) roots(f *found) []int {
	roots, c := slices.Clone(v.members(f.record.ID)), f.record.Command
	if _, hidden := proc.Getenv(c.Pid, SessionEnv); hidden && v.Has(c) {
		roots = append(roots, c.Pid)
	}
	return slices.DeleteFunc(roots, func(pid int) bool { return v.Procs[pid].Start < f.record.Self.Start })
}

// procs lists the session's living processes, with what they run.
func (f *found) procs() ([]Proc, error) {
	v, err := newView()
	if err != nil {
		return nil, err
	}
	ps := v.procs(f)
	proc.Fill(ps)
	return ps, nil
}

// walk kills what can be found until two looks in a row find nothing, or ctx is done. That
// is proof only of a control group that the command could not leave. It stops all first,
// look by look, until none that it finds runs any more: a fork bomb that meets its limit is
// quicker than any killer who gives it room by killing, but what is stopped takes up room
// and makes no more.
func (f *found) walk(ctx context.Context, r *Report) error {
	const patience = 100 // looks, after which what was found is killed all the same
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
			if ctx.Err() != nil { // the next reaping finds these stopped
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
		r.Unproved = "neither a keeper nor a control group is left: a process that changed its group, parent and environment can't be told from others"
	}
	return nil
}

// signalAll signals processes, SIGSTOP to those that run, and gives the number of them.
func signalAll(ps []Proc, sig unix.Signal) (n int) {
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
	return n
}
