package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce/libsystem"
	"github.com/zsbx/zsbx/track/internal/proc"
	"github.com/zsbx/zsbx/track/internal/scan"
)

const howFingerprint = "two searches of the process table in a row found nothing with the session's fingerprint, and nothing changed meanwhile"

// reap kills all that is left of a session and says what it came to.
func (f *found) reap(ctx context.Context, r *Report) error {
	if done, err := f.placed(r); done || err != nil {
		return err
	}
	return f.settle(ctx, r)
}

// settle searches and kills. A session without a record is searched for all
// the same: its id is all that the fingerprint needs.
func (f *found) settle(ctx context.Context, r *Report) error {
	if f.holder.Tracker == Group {
		return f.settleGroup(r)
	}
	h := &scan.Search{
		Table: &kernelTable{session: f.dir.id, owner: f.owner()}, Self: os.Getpid(), Command: f.holder.Command,
	}
	if f.record != nil {
		h.Supervisor = f.record.Supervisor
		h.Began = uint64(f.record.Started.UnixMicro())
	}
	if end, ok := ctx.Deadline(); ok {
		h.Limit = max(time.Until(end), time.Millisecond)
	}
	res, err := h.Run(ctx)
	r.Killed += res.Killed
	r.addMethods("fingerprint")
	if err == nil {
		r.prove(howFingerprint)
		return nil
	}
	var left *scan.LeftError
	if !errors.As(err, &left) || len(res.Left) == 0 {
		return err
	}
	r.Unproved = err.Error()
	for _, s := range res.Left {
		p, err := proc.Look(s.Pid)
		if err != nil || p.ID != s.ID {
			p = Proc{ID: s.ID}
		}
		r.Survivors = append(r.Survivors, p)
	}
	proc.Fill(r.Survivors)
	return nil
}

// settleGroup kills the process group of a command that carries no profile, as
// long as its first process is the recorded one. What left the group is lost.
func (f *found) settleGroup(r *Report) error {
	c := f.holder.Command
	if now, err := proc.Look(c.Pid); c.Pid > 1 && err == nil && now.ID == c && now.Group == c.Pid {
		if err := syscall.Kill(-c.Pid, syscall.SIGKILL); err == nil {
			r.Killed++
		}
	}
	r.addMethods("group")
	r.Unproved = "what left the command's process group can't be found"
	return nil
}

// owner is the user whose session it is.
func (f *found) owner() int {
	if f.record != nil {
		return f.record.UID
	}
	return os.Geteuid()
}

// cleanup removes the marker files.
func (f *found) cleanup() error { return removeMarkers(f.dir.id, f.owner()) }

// look finds out what lives of the sessions, with one snapshot for all. Most
// processes are under no profile at all and are asked once. A session that went
// away meanwhile gets no Life.
func look(all []Info, fs []*found) error {
	here, err := thisMachine()
	if err != nil {
		return err
	}
	ps, err := proc.List(effectiveUser())
	if err != nil {
		return fmt.Errorf("listing processes: %w", err)
	}
	ps = slices.DeleteFunc(ps, Proc.Dead)
	var boxed []Proc
	for _, p := range ps {
		if libsystem.SandboxCheck(p.Pid, "", libsystem.FilterNone, "") != scan.Allowed {
			boxed = append(boxed, p)
		}
	}
	for n, f := range fs {
		if !f.refresh() {
			continue
		}
		place := f.place(here)
		if place == present {
			all[n].Procs = f.procsIn(ps, boxed)
			proc.Fill(all[n].Procs)
		}
		switch alive := len(all[n].Procs) > 0; {
		case alive && f.holder.Tracker != Group && f.word.locked:
			all[n].Life = Running
		case alive && f.holder.Tracker != Group: // its supervisor is gone
			all[n].Life = Kept
		default:
			all[n].Life = f.life(place, noKeeper, alive)
		}
	}
	return nil
}

// procsIn picks the session's processes: from all, or from those under a profile.
func (f *found) procsIn(all, boxed []Proc) (out []Proc) {
	if f.holder.Tracker == Group {
		for _, p := range all {
			if p.Group == f.holder.Command.Pid {
				out = append(out, p)
			}
		}
		return out
	}
	t := &kernelTable{session: f.dir.id, owner: f.owner()}
	markers := t.Markers() == nil
	for _, p := range boxed {
		if t.Probe(p.Pid).Match(markers) == scan.Member {
			out = append(out, p)
		}
	}
	return out
}
