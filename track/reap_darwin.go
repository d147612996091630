package track

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/track/internal/proc"
	"github.com/zsbx/zsbx/track/internal/scan"
)

const howFingerprint = "two searches of the process table in a row found nothing with the session's fingerprint, and nothing changed meanwhile"

// reap searches and kills. A session without a record is searched for all
// the same: its id is all that the fingerprint needs.
func (f *found) reap(ctx context.Context, r *Report) error {
	if f.record.Tracker == Group {
		return f.settleGroup(r)
	}
	h := &scan.Search{
		Table: &kernelTable{session: f.dir.id}, Self: os.Getpid(), Command: f.record.Command,
	}
	if f.recorded {
		h.Supervisor = f.record.Supervisor
		h.Began = uint64(f.record.Started.UnixMicro())
	}
	if end, ok := ctx.Deadline(); ok {
		h.Limit = max(time.Until(end), time.Millisecond)
	}
	err := h.Run(ctx)
	r.Killed += h.Killed()
	r.addMethods("fingerprint")
	if err == nil {
		r.prove(howFingerprint)
		return nil
	}
	if !errors.Is(err, scan.ErrUnproved) || len(h.Left) == 0 {
		return err
	}
	r.Unproved = err.Error()
	for _, s := range h.Left {
		r.Survivors = append(r.Survivors, s.Process)
	}
	proc.Fill(r.Survivors)
	return nil
}

// settleGroup kills the process group of a command that carries no profile, as
// long as its first process is the recorded one. What left the group is lost.
func (f *found) settleGroup(r *Report) error {
	c := f.record.Command
	if now, err := proc.Look(c.Pid); c.Pid > 1 && err == nil && now.ID == c && now.Group == c.Pid {
		if err := syscall.Kill(-c.Pid, syscall.SIGKILL); err == nil {
			r.Killed++
		}
	}
	r.addMethods("group")
	r.Unproved = "what left the command's process group can't be found"
	return nil
}

// cleanup has nothing to remove beside the record.
func (f *found) cleanup() error { return nil }

// finder takes a snapshot in which sessions are found: what their supervisor says,
// as there is no keeper, their processes, and whether their files are still there.
func finder() (func(f *found, here bool) (keeper Life, procs []Proc, there bool), error) {
	all, err := proc.List(effectiveUser())
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, Proc.Dead)
	return func(f *found, here bool) (keeper Life, procs []Proc, there bool) {
		if !f.refresh() || !here {
			return "", nil, f.dir.in.has(f.dir.id)
		}
		procs = f.procsIn(all)
		switch {
		case len(procs) == 0 || f.record.Tracker == Group:
		case f.word.locked:
			keeper = Running
		default: // its supervisor is gone
			keeper = Kept
		}
		return keeper, procs, true
	}, nil
}

// procsIn picks the session's processes.
func (f *found) procsIn(all []Proc) (out []Proc) {
	t, group := &kernelTable{session: f.dir.id}, f.record.Tracker == Group
	for _, p := range all {
		if group && p.Group == f.record.Command.Pid || !group && t.Probe(p.Pid).Match() == scan.Member {
			out = append(out, p)
		}
	}
	return out
}
