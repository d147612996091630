package track

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/track/internal/proc"
)

const (
	// keeperName is what the kernel calls a keeper: nobody outside of a
	// session can be made to look like one by what a record says.
	keeperName = "zsbx-keeper"

	// allBlocked is the mask of a process that blocks all signals, of which the
	// kernel leaves out SIGKILL and SIGSTOP.
	allBlocked = ^uint64(1<<(9-1) | 1<<(19-1))
)

// isKeeper tells a keeper from a process that is only called so: it leads a
// session, has one thread, and blocks every signal, so that fork.ReapSignal does
// no harm to anything else that looks like that. No process can make another
// one look so; one that does it to itself asks for the signal.
func isKeeper(p Proc) bool {
	if p.Name != keeperName || p.Dead() || p.Session != p.Pid || p.Group != p.Pid {
		return false
	}
	st, err := proc.StatusOf(p.Pid)
	return err == nil && st.UID == os.Geteuid() && st.Threads == 1 && st.Blocked == allBlocked &&
		(st.Depth == 1 || st.Depth == 2 && st.Inner == 1) // the init of its session's PID namespace
}

// sessionOf gives the session that the environment which pid was started with
// names, "" if none.
func sessionOf(pid int) string {
	id, _ := proc.Getenv(pid, SessionEnv)
	return id
}

// openKeeper opens the keeper's process. proc.ErrGone says that it is no more.
//
// A session that is just starting has no recorded keeper yet: then this waits
// for it. One whose supervisor died in that very moment never will have, and
// where the file can't be read it never was: then the keeper is found by what
// runs below it.
func (f *found) openKeeper(ctx context.Context) (*proc.Handle, error) {
	for try := 0; f.holder.Keeper.IsZero() && f.holder.Command.Start == 0; try++ {
		h, err := f.dir.readHolder()
		if err == nil {
			f.holder = h
			break
		}
		f.word = readState(f.state)
		if !errors.Is(err, fs.ErrNotExist) || !f.word.locked || try == 100 || ctx.Err() != nil {
			t, err := proc.Snapshot()
			if err != nil {
				return nil, err
			}
			f.findKeeper(t, readMembers(t))
			break
		}
		sleep(ctx, 10*time.Millisecond)
	}
	h, err := proc.Open(f.holder.Keeper)
	if err != nil {
		return nil, err
	}
	if err := checkKeeper(ctx, h.ID); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// checkKeeper makes sure that what the record calls a keeper is one, and is
// the user's.
func checkKeeper(ctx context.Context, id ProcID) error {
	st, err := proc.StatusOf(id.Pid)
	switch {
	case proc.Gone(err):
		return proc.ErrGone
	case err != nil:
		return err
	case st.UID != os.Geteuid() && os.Geteuid() != 0:
		return fmt.Errorf("keeper %d: %w: it runs as uid %d, you are uid %d", id.Pid, errForeign, st.UID, os.Geteuid())
	}
	for range 100 { // a keeper that was just forked has no name yet
		p, err := proc.Look(id.Pid)
		switch {
		case err != nil || p.Start != id.Start || p.Dead():
			return proc.ErrGone
		case p.Name == keeperName:
			return nil
		}
		sleep(ctx, 10*time.Millisecond)
	}
	return fmt.Errorf("process %d is recorded as the session's keeper but is not one: not touched", id.Pid)
}

// findKeeper looks for the keeper of a session of which no file names it: by what
// runs right below it, the process that the keeper wrote down as the command, or
// one that was started with the session's id. A process can make that look so for
// the keeper of its own session, and for no other.
func (f *found) findKeeper(t *proc.Table, m members) {
	if !f.holder.Keeper.IsZero() || f.empty() {
		return
	}
	below := m[f.dir.id]
	if c := int(f.word.state.CommandPid); c > 1 && sessionOf(c) == "" {
		below = append(slices.Clone(below), c)
	}
	for _, pid := range below {
		if k, ok := t.Procs[t.Procs[pid].Parent]; ok && isKeeper(k) {
			f.holder.Keeper = k.ID
			return
		}
	}
}

// vouching looks at the session's keeper. A stopped one whose supervisor is gone
// was about to end the session, unless that is to be kept.
func (f *found) vouching(t *proc.Table) vouching {
	switch k := f.holder.Keeper; {
	case !t.Has(k):
		return noKeeper
	case f.record == nil || f.record.Keep || f.word.state.Phase == fork.PhaseKept:
	case t.Procs[k.Pid].Stopped() && !t.Has(f.record.Supervisor):
		return keeperStuck
	}
	return keeperLives
}
