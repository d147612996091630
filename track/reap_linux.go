package track

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

const (
	howKeeper = "the keeper, which adopts every orphan of the session, has no child left (wait4: ECHILD)"
	howBeside = "the keeper finds no process any more that it may signal: those are all of the session, whose Landlock domain can't be left"
	howCgroup = "the session's control group, which the command could not leave, is empty"
	howReboot = "the machine was restarted since"
	howEmpty  = "nothing was ever started"

	// keeperName is what the kernel calls a keeper: nobody outside of a
	// session can be made to look like one by what a record says.
	keeperName = "zsbx-keeper"
)

// reap kills all that is left of a session and says what it came to.
func (f *found) reap(ctx context.Context, r *Report) error {
	done, err := f.placed(r)
	if done || err != nil {
		return err
	}
	if f.empty() {
		r.Proof, r.How = true, f.howKept()
		return nil
	}
	k, err := f.openKeeper(ctx)
	if errors.Is(err, errGone) {
		f.word = readState(f.state) // it may have ended since the first look
		if f.empty() {
			r.Proof, r.How = true, f.howKept()
			return nil
		}
		if f.nothingStarted() {
			r.Proof, r.How = true, howEmpty
			return nil
		}
		return f.settleLost(ctx, r)
	}
	if err != nil {
		return err
	}
	defer k.close()
	return f.askKeeper(ctx, k, r)
}

// howKept is what an empty session's keeper knows it by.
func (f *found) howKept() string {
	if f.record != nil && f.record.Exec {
		return howBeside
	}
	return howKeeper
}

// placed decides what needs no look at processes: sessions of another boot,
// machine or PID namespace.
func (f *found) placed(r *Report) (done bool, err error) {
	host, boot, ns, err := machine()
	if err != nil {
		return false, err
	}
	switch f.place(host, boot, ns) {
	case present:
		return false, nil
	case rebooted:
		r.Proof, r.How = true, howReboot
		return true, nil
	}
	switch {
	case f.record.Boot != boot:
		return true, fmt.Errorf("session %s: %w: on the machine %q", f.dir.id, ErrElsewhere, cut(f.record.Host, 64))
	case f.empty():
		r.Proof, r.How = true, f.howKept()
		return true, nil
	}
	return true, fmt.Errorf("session %s: %w: in another PID namespace (a container?)", f.dir.id, ErrElsewhere)
}

// nothingStarted reports whether the supervisor died before it started
// anything.
func (f *found) nothingStarted() bool {
	return !f.word.known && !f.word.locked && f.holder.Keeper.IsZero() && f.holder.Command.IsZero()
}

// askKeeper tells the keeper to end its session, and waits for its word.
func (f *found) askKeeper(ctx context.Context, k *handle, r *Report) error {
	err := k.signal(fork.ReapSignal)
	if err == nil {
		err = k.signal(unix.SIGCONT) // somebody may have stopped it
	}
	switch {
	case errors.Is(err, errGone):
	case errors.Is(err, unix.EPERM) && os.Getenv(SessionEnv) != "":
		return fmt.Errorf("signalling keeper %d: %w (this process runs inside session %s)", k.id.Pid, err, cut(os.Getenv(SessionEnv), 64))
	case err != nil:
		return fmt.Errorf("signalling keeper %d: %w", k.id.Pid, err)
	}
	if g := f.openGroup(); g != nil {
		// A scope was made after the keeper, which therefore can't use it.
		if g.ref.Unit != "" && g.kill() == nil {
			r.addMethod("cgroup")
		}
		g.close()
	}
	ended := k.wait(ctx)
	f.word = readState(f.state)
	for _, m := range methods(f.word.state.Method) {
		r.addMethod(m)
	}
	switch {
	case f.empty():
		r.Proof, r.How, r.Killed = true, f.howKept(), int(f.word.state.Killed)
		return nil
	case ended:
		return f.settleLost(ctx, r)
	}
	r.Unproved = "the keeper is still at it: a process that the kernel does not let die holds it up"
	r.Survivors, err = f.procs()
	return err
}

// wait waits until the process has ended or ctx is done.
func (h *handle) wait(ctx context.Context) bool {
	const slice = 50 // milliseconds in which to look at ctx
	for {
		p := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
		if n, _ := unix.Poll(p, slice); n > 0 {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// settleLost does what can be done without a keeper: the control group, if the
// session has one, and then whatever can be found.
func (f *found) settleLost(ctx context.Context, r *Report) error {
	if g := f.openGroup(); g != nil {
		defer g.close()
		before, _ := g.pids()
		err := g.killAll(ctx)
		r.addMethod("cgroup")
		if errors.Is(err, ctx.Err()) && err != nil {
			r.Unproved = "the control group is not empty yet: the kernel does not let a process die"
			r.Survivors, err = f.procs()
			return err
		}
		if err != nil {
			return err
		}
		r.Killed += len(before)
		if err := g.remove(); err != nil {
			return err
		}
		if f.confined() {
			r.Proof, r.How = true, howCgroup
			return nil
		}
	}
	return settleWalk(ctx, f.targets(), r)
}

// openGroup opens the session's own control group, nil if there is none.
func (f *found) openGroup() *cgroup {
	if f.holder.Cgroup == nil || !f.holder.Cgroup.ours(f.dir.id) {
		return nil
	}
	g, err := reopenCgroup(f.holder.Cgroup)
	if err != nil {
		return nil
	}
	return g
}

// targets says how to tell the session's processes without a keeper.
func (f *found) targets() targets {
	g := targets{id: f.dir.id, not: os.Getpid()}
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

// procs lists the session's living processes.
func (f *found) procs() ([]Proc, error) {
	t, err := readTable()
	if err != nil {
		return nil, err
	}
	ps := f.procsIn(t, t.children(), nil)
	fill(ps)
	return ps, nil
}

// procsIn lists them from a snapshot. m may be nil.
func (f *found) procsIn(t table, children map[int][]int, m members) []Proc {
	if f.empty() {
		return nil
	}
	if !t.has(f.holder.Keeper) || f.record != nil && f.record.Exec {
		return f.targets().among(t, children, m)
	}
	var ps []Proc
	for _, p := range t.below(f.holder.Keeper.Pid, children) {
		if !p.dead() {
			ps = append(ps, p)
		}
	}
	return ps
}

// cleanup removes what the session has beside its record: its control group,
// when that is empty.
func (f *found) cleanup() error {
	g := f.openGroup()
	if g == nil {
		return nil
	}
	defer g.close()
	if p, err := g.populated(); err != nil || p {
		return fmt.Errorf("control group %s is not empty", g.ref.Path)
	}
	return g.remove()
}
