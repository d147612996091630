package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/libsystem"
)

// held is what holds a session on macOS, beside the profile.
type held struct {
	markers bool // the marker files were made
}

const (
	howFingerprint = "two searches of the process table in a row found nothing with the session's fingerprint, and nothing changed meanwhile"
	howReboot      = "the machine was restarted since"
)

// probe finds out whether the fingerprint can be had.
func probe() Caps {
	c := Caps{OS: "macos"}
	switch libsystem.SandboxCheck(os.Getpid(), "", libsystem.FilterNone, "") {
	case libsystem.Allowed:
		c.Seatbelt = true
	case libsystem.Denied:
		c.SeatbeltWhy = "this process runs in a sandbox already, and macOS can't nest them"
	default:
		c.SeatbeltWhy = "sandbox_check gives no answer"
	}
	return c
}

// choose picks the tracker.
func (s *Session) choose() error {
	s.caps = probe()
	if s.opts.Caps != nil {
		s.caps = *s.opts.Caps
	}
	c, err := Choose(s.caps, s.opts.Tracker, s.opts.Scoped)
	s.choice = c
	return err
}

// weaken takes the next tracker when the profile of a command that is only
// tracked was refused. A confined command is never started without its profile.
func (s *Session) weaken(failure error) error {
	var refused *fork.SandboxError
	if s.choice.Kind != Fingerprint || s.opts.Confined || !errors.As(failure, &refused) {
		return failure
	}
	_ = s.removeHeld()
	s.caps.Seatbelt, s.caps.SeatbeltWhy = false, failure.Error()
	c, err := Choose(s.caps, s.opts.Tracker, s.opts.Scoped)
	if err != nil {
		return err
	}
	s.choice = c
	return nil
}

// equip gives the command what its tracker needs.
func (s *Session) equip(c *fork.Command) error {
	c.Keeper = nil
	s.holder = Holder{Tracker: s.choice.Kind}
	id := s.record.ID
	switch {
	case s.choice.Kind == Group:
		c.Group = true
		if !s.opts.Confined {
			c.Sandbox = nil // it was for the fingerprint only
		}
	case c.Sandbox == nil:
		c.Sandbox = &fork.Sandbox{Profile: fingerprint.TrackProfile(id), Session: id, Markers: true}
	case c.Sandbox.Session != id:
		return fmt.Errorf("the command's profile carries the fingerprint of session %q, not of this one", c.Sandbox.Session)
	}
	if c.Sandbox == nil || c.Sandbox.Session != id || s.held.markers {
		return nil
	}
	if err := makeMarkers(id); err != nil {
		return err
	}
	s.held.markers = true
	return nil
}

// launch makes one attempt to start c with the chosen tracker.
func (s *Session) launch(c fork.Command) error {
	if err := s.equip(&c); err != nil {
		return err
	}
	var recorded error
	after := c.Meanwhile
	c.Meanwhile = func(p *fork.Process) {
		if after != nil {
			after(p)
		}
		if s.holder.Command, recorded = identify(p.Pid); recorded == nil {
			recorded = s.dir.writeHolder(&s.holder)
		}
	}
	p, err := fork.Start(&c)
	if err != nil {
		return err
	}
	if recorded != nil {
		_ = p.Kill()
		return fmt.Errorf("recording the session: %w", recorded)
	}
	s.proc = p
	return nil
}

// replace is Exec.
func (s *Session) replace(c fork.Command) error {
	if err := s.equip(&c); err != nil {
		return err
	}
	if s.choice.Kind != Fingerprint {
		return &TrackerError{Kind: s.choice.Kind, Why: "it needs a supervisor, which --exec does away with", Hint: "--track auto"}
	}
	s.holder.Command = s.record.Supervisor
	if err := s.dir.writeHolder(&s.holder); err != nil {
		return fmt.Errorf("recording the session: %w", err)
	}
	return fork.Exec(&c)
}

// awaitKeeper: there is no keeper to wait for.
func (s *Session) awaitKeeper(context.Context) bool { return true }

// kill ends the command; settle finds the rest.
func (s *Session) kill() error {
	if s.choice.Kind == Group {
		_ = syscall.Kill(-s.proc.Pid, syscall.SIGKILL)
	}
	if err := s.proc.Kill(); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// settle kills what is left and finds out whether that was all.
func (s *Session) settle(ctx context.Context, r *Report) error {
	f := &found{dir: s.dir, record: &s.record, holder: s.holder}
	return f.settle(ctx, r)
}

// removeHeld removes the marker files.
func (s *Session) removeHeld() error {
	if !s.held.markers {
		return nil
	}
	s.held.markers = false
	return removeMarkers(s.record.ID, os.Geteuid())
}

func (s *Session) closeHeld() {}

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
	h := &hunt{
		table: &kernelTable{session: f.dir.id, owner: f.owner()}, self: os.Getpid(), command: f.holder.Command,
	}
	if f.record != nil {
		h.supervisor = f.record.Supervisor
		h.began = uint64(f.record.Started.UnixMicro())
	}
	if end, ok := ctx.Deadline(); ok {
		h.limit = max(time.Until(end), time.Millisecond)
	}
	res, err := h.run(ctx)
	r.Killed += res.killed
	r.addMethod("fingerprint")
	if err == nil {
		r.Proof, r.How = true, howFingerprint
		return nil
	}
	var left *leftError
	if !errors.As(err, &left) || len(res.left) == 0 {
		return err
	}
	r.Unproved = err.Error()
	for _, s := range res.left {
		p, err := readProc(s.Pid)
		if err != nil || p.ProcID != s.ProcID {
			p = Proc{ProcID: s.ProcID}
		}
		r.Survivors = append(r.Survivors, p)
	}
	return nil
}

// settleGroup kills the process group of a command that carries no profile, as
// long as its first process is the recorded one. What left the group is lost.
func (f *found) settleGroup(r *Report) error {
	c := f.holder.Command
	if now, err := lookup(c.Pid); c.Pid > 1 && err == nil && now.ProcID == c && now.group == c.Pid {
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
// processes are under no profile at all and are asked once.
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
		if k := &ks[i]; k.Proc.P_stat != szomb && libsystem.SandboxCheck(int(k.Proc.P_pid), "", libsystem.FilterNone, "") != allowed {
			boxed = append(boxed, k)
		}
	}
	for n := range all {
		f := fs[n]
		if f == nil {
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
			all[n].Life = life(f, here, false, alive)
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
	markers := t.markers() == nil
	for _, k := range boxed {
		if t.probe(int(k.Proc.P_pid)).verdict(markers) == member {
			ps = append(ps, procOf(k))
		}
	}
	return ps
}
