package track

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track/internal/proc"
)

const (
	// keeperName is what the kernel calls a keeper: nobody outside of a
	// session can be made to look like one by what a record says.
	keeperName = "zsbx-keeper"

	// allBlocked is the mask of a process that blocks all signals, of which the
	// kernel leaves out SIGKILL and SIGSTOP, the 9th and the 19th.
	allBlocked = "fffffffffffbfeff"
)

// isKeeper tells a keeper from a process that is only called so: it leads a
// session, has one thread, and blocks every signal, so that fork.ReapSignal does
// no harm to anything else that looks like that. No process can make another
// one look so; one that does it to itself asks for the signal.
func isKeeper(p Proc) bool {
	return p.Name == keeperName && !p.Dead() && p.Session == p.Pid && p.Group == p.Pid && blocksAll(p.Pid)
}

// blocksAll reports whether a process is the user's, has one thread and blocks every
// signal, as a keeper does from its first act on.
func blocksAll(pid int) bool {
	st := proc.Status(pid)
	uids, pids := st["Uid"], st["NSpid"]
	return len(uids) == 4 && uids[1] == strconv.Itoa(os.Geteuid()) &&
		slices.Equal(st["Threads"], []string{"1"}) && slices.Equal(st["SigBlk"], []string{allBlocked}) &&
		(len(pids) == 1 || len(pids) == 2 && pids[1] == "1") // the init of its session's PID namespace
}

// sessionOf gives the session that the environment which pid was started with
// names, "" if none.
func sessionOf(pid int) string {
	id, _ := proc.Getenv(pid, SessionEnv)
	return id
}

// openKeeper opens the keeper's process. proc.ErrGone says that it is no more.
//
// A session that is just starting has no record yet, or that of a keeper whose
// command could not be executed, until another is tried: then this waits for it. One
// whose supervisor died in that very moment never will have, and where the file
// can't be read the keeper is found by what runs below it.
func (f *found) openKeeper(ctx context.Context) (h *proc.Handle, err error) {
	for try := 0; ; try++ {
		h, err = f.recordedKeeper()
		if !errors.Is(err, proc.ErrGone) || !f.starting() || try == 100 || ctx.Err() != nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
		f.refresh()
	}
	if !errors.Is(err, proc.ErrGone) || f.recorded || !f.record.Keeper.IsZero() {
		return h, err
	}
	t, err := proc.Snapshot()
	if err != nil {
		return nil, err
	}
	f.findKeeper(t, readMembers(t))
	return f.recordedKeeper()
}

// starting reports whether a supervisor lives that may still make the session's keeper.
func (f *found) starting() bool {
	return f.damage == nil && f.word.locked && !f.word.known && !(f.recorded && f.record.Keeper.IsZero())
}

// recordedKeeper opens the process that the record calls the keeper.
func (f *found) recordedKeeper() (*proc.Handle, error) {
	h, err := proc.Open(f.record.Keeper)
	if err != nil {
		return nil, err
	}
	if err := checkKeeper(h.ID); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// checkKeeper makes sure that what the record calls a keeper is one, and is
// the user's.
func checkKeeper(id ProcID) error {
	for try := range 100 { // a keeper that was just forked does not look like one yet
		p, err := proc.Look(id.Pid)
		switch {
		case err != nil || p.Start != id.Start || p.Dead():
			return proc.ErrGone
		case isKeeper(p):
			return nil
		case try == 10 && blocksAll(p.Pid):
			wake(p)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("process %d is recorded as the session's keeper but is not one: not touched", id.Pid)
}

// wake continues a keeper that somebody stopped while it started the command, and that,
// for which it sleeps until it executes (vfork(2)).
func wake(keeper Proc) {
	t, err := proc.Snapshot()
	if err != nil {
		return
	}
	for _, p := range append(t.Below(keeper.Pid), keeper) {
		if h, err := proc.Open(p.ID); err == nil {
			_ = h.Signal(unix.SIGCONT)
			h.Close()
		}
	}
}

// findKeeper looks for the keeper of a session of which no file names it: by what
// runs right below it, the process that the keeper wrote down as the command, or
// one that was started with the session's id. A process can make that look so for
// the keeper of its own session, and for no other.
func (f *found) findKeeper(t *proc.Table, m members) {
	if !f.record.Keeper.IsZero() || f.word.empty() {
		return
	}
	below := m[f.dir.id]
	if c := int(f.word.state.CommandPid); c > 1 && sessionOf(c) == "" {
		below = append(slices.Clone(below), c)
	}
	for _, pid := range below {
		if k, ok := t.Procs[t.Procs[pid].Parent]; ok && isKeeper(k) {
			f.record.Keeper = k.ID
			return
		}
	}
}
