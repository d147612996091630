package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/libsystem"
	"github.com/zsbx/zsbx/track/internal/scan"
)

const (
	howFingerprint = "two searches of the process table in a row found nothing with the session's fingerprint, and nothing changed meanwhile"
	howReboot      = "the machine was restarted since"
)

// reap kills all that is left of a session and says what it came to.
func (f *found) reap(ctx context.Context, r *Report) error {
	host, boot, ns, err := machine()
	if err != nil {
		return err
	}
	switch f.place(host, boot, ns) {
	case rebooted:
		r.Proof, r.How = true, howReboot
		return nil
	case elsewhere:
		return fmt.Errorf("session %s: %w: on the machine %q", f.dir.id, ErrElsewhere, cut(f.record.Host, 64))
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
		Table: &kernelTable{session: f.dir.id, owner: f.owner()}, Self: os.Getpid(), Command: scan.ID(f.holder.Command),
	}
	if f.record != nil {
		h.Supervisor = scan.ID(f.record.Supervisor)
		h.Began = uint64(f.record.Started.UnixMicro())
	}
	if end, ok := ctx.Deadline(); ok {
		h.Limit = max(time.Until(end), time.Millisecond)
	}
	res, err := h.Run(ctx)
	r.Killed += res.Killed
	r.addMethod("fingerprint")
	if err == nil {
		r.Proof, r.How = true, howFingerprint
		return nil
	}
	var left *scan.LeftError
	if !errors.As(err, &left) || len(res.Left) == 0 {
		return err
	}
	r.Unproved = err.Error()
	for _, s := range res.Left {
		p, err := readProc(s.Pid)
		if err != nil || p.ProcID != ProcID(s.ID) {
			p = Proc{ProcID: ProcID(s.ID)}
		}
		r.Survivors = append(r.Survivors, p)
	}
	return nil
}

// settleGroup kills the process group of a command that carries no profile, as
// long as its first process is the recorded one. What left the group is lost.
func (f *found) settleGroup(r *Report) error {
	c := f.holder.Command
	if now, err := lookup(c.Pid); c.Pid > 1 && err == nil && ProcID(now.ID) == c && now.Group == c.Pid {
		if err := syscall.Kill(-c.Pid, syscall.SIGKILL); err == nil {
			r.Killed++
		}
	}
	r.addMethod("group")
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
	host, boot, ns, err := machine()
	if err != nil {
		return err
	}
	ks, err := kinfo()
	if err != nil {
		return fmt.Errorf("listing processes: %w", err)
	}
	var boxed []*unix.KinfoProc
	for i := range ks {
		if k := &ks[i]; k.Proc.P_stat != szomb && libsystem.SandboxCheck(int(k.Proc.P_pid), "", libsystem.FilterNone, "") != scan.Allowed {
			boxed = append(boxed, k)
		}
	}
	for n := range all {
		f := fs[n]
		if !f.refresh() {
			continue
		}
		here := f.place(host, boot, ns)
		if here == present {
			all[n].Procs = f.procsIn(ks, boxed)
		}
		switch alive := len(all[n].Procs) > 0; {
		case alive && f.holder.Tracker != Group && f.word.locked:
			all[n].Life = Running
		case alive && f.holder.Tracker != Group: // its supervisor is gone
			all[n].Life = Kept
		default:
			all[n].Life = life(f, here, noKeeper, alive)
		}
	}
	return nil
}

// procsIn lists the session's processes.
func (f *found) procsIn(ks []unix.KinfoProc, boxed []*unix.KinfoProc) []Proc {
	var ps []Proc
	if f.holder.Tracker == Group {
		for i := range ks {
			if int(ks[i].Eproc.Pgid) == f.holder.Command.Pid && ks[i].Proc.P_stat != szomb {
				ps = append(ps, procOf(&ks[i]))
			}
		}
		return ps
	}
	t := &kernelTable{session: f.dir.id, owner: f.owner()}
	markers := t.Markers() == nil
	for _, k := range boxed {
		if t.Probe(int(k.Proc.P_pid)).Match(markers) == scan.Member {
			ps = append(ps, procOf(k))
		}
	}
	return ps
}
