package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// How a later process ends a session: placed settles what is over or elsewhere;
// askKeeper has the keeper do it, whose word is the proof; settleLost does without
// one, by the control group, or by what names the session in its environment
// (walk_linux.go), and then proves nothing.

const (
	howKeeper = "the keeper, which adopts every orphan of the session, has no child left (wait4: ECHILD)"
	howCgroup = "the session's control group, which the command could not leave, is empty"
	howReboot = "the machine was restarted since"
	howClock  = "its record can't be read, and by the clock all of its files are older than the machine's last start"
	howWord   = "the keeper, which watched the whole session, recorded it before it ended"
	howEmpty  = "nothing was ever started"

	unprovedWord = "the keeper's word can't be read; the keeper ended when it was asked to, which it does when nothing is left"

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
	for {
		k, err := f.openKeeper(ctx)
		if errors.Is(err, errGone) {
			break
		}
		if err != nil {
			return err
		}
		over, err := f.askKeeper(ctx, k, r)
		k.close()
		if over || err != nil || ctx.Err() != nil {
			return err
		}
		f.holder.Keeper = ProcID{} // the file names it again, or there may be another
	}
	f.word = readState(f.state) // it may have ended since the first look
	switch {
	case f.empty():
		r.Proof, r.How = true, f.howKept()
		return nil
	case f.nothingStarted():
		r.Proof, r.How = true, howEmpty
		return nil
	case f.word.locked && f.holder.Keeper.IsZero():
		return fmt.Errorf("session %s: %w", f.dir.id, ErrHeld)
	}
	return f.settleLost(ctx, r)
}

// howKept is Report.How for a session that its keeper reported empty.
func (f *found) howKept() string {
	if f.record == nil {
		return howWord
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
// anything. Files that were lost or damaged would look the same: then, or when a
// process says that it is the session's, something was.
func (f *found) nothingStarted() bool {
	if f.word.known || f.word.locked || f.damage != nil || f.state == nil || !f.holder.Keeper.IsZero() || !f.holder.Command.IsZero() {
		return false
	}
	ps, err := f.procs()
	return err == nil && len(ps) == 0
}

// askKeeper tells the keeper to end its session, and waits for its word. over
// says that nothing else is to be done.
func (f *found) askKeeper(ctx context.Context, k *handle, r *Report) (over bool, _ error) {
	var before []Proc
	if !f.word.known {
		before, _ = f.procs() // its word, which counts them, may never come
	}
	err := k.signal(fork.ReapSignal)
	if err == nil {
		err = k.signal(unix.SIGCONT) // somebody may have stopped it
	}
	switch {
	case errors.Is(err, errGone):
	case errors.Is(err, unix.EPERM) && os.Getenv(SessionEnv) != "":
		return true, fmt.Errorf("signalling keeper %d: %w (this process runs inside session %s)", k.id.Pid, err, cut(os.Getenv(SessionEnv), 64))
	case err != nil:
		return true, fmt.Errorf("signalling keeper %d: %w", k.id.Pid, err)
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
		r.Proof, r.How = true, f.howKept()
		r.Killed += int(f.word.state.Killed)
		return true, nil
	case ended:
		if !f.word.known {
			r.Killed += len(before)
			r.Unproved = unprovedWord
		}
		return false, nil
	}
	r.Unproved = "the keeper is still waiting for a process that the kernel does not let die"
	r.Survivors, err = f.procs()
	return true, err
}

// wait waits until the process has ended or ctx is done.
func (h *handle) wait(ctx context.Context) bool {
	const slice = 50 // milliseconds in which to look at ctx
	for {
		p := []unix.PollFd{{Fd: int32(h.fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, slice)
		if n > 0 {
			return true
		}
		if err != nil && err != unix.EINTR {
			time.Sleep(slice * time.Millisecond)
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
	ended := r.Unproved // by a keeper without a word
	err := settleWalk(ctx, f.targets(), r)
	switch {
	case err != nil || r.Left():
	case f.record == nil && f.beforeBoot():
		r.Proof, r.How, r.Unproved = true, howClock, ""
	case ended != "":
		r.Unproved = ended
	}
	return err
}

// beforeBoot reports whether by the clock nothing of the session's files was
// changed since the machine's start: a power loss leaves files that were not on
// the disk yet empty, with the times that they had. Clocks are corrected by small
// steps, which a minute allows for; it is asked only where nothing else can be
// known.
func (f *found) beforeBoot() bool {
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) != nil {
		return false
	}
	boot := time.Now().Add(-time.Duration(up.Nano()) - time.Minute)
	seen := false
	for _, ext := range sessionFiles() {
		var st unix.Stat_t
		err := unix.Fstatat(f.dir.in.fd, f.dir.id+ext, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && !time.Unix(st.Ctim.Unix()).Before(boot) {
			return false
		}
		seen = seen || err == nil
	}
	return seen
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
