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

	"github.com/zsbx/zsbx/internal/procfs"
	"github.com/zsbx/zsbx/track/internal/proc"
)

// A session's keeper is the process that its record names. Where no record can be read,
// the keepers among all processes are looked at: below that of a session runs what was
// started with its id.

const (
	// keeperName is what the kernel calls a keeper: nobody outside of a
	// session can be made to look like one by what a record says.
	keeperName = "zsbx-keeper"

	// allBlocked is the mask of a process that blocks all signals, of which the
	// kernel leaves out SIGKILL and SIGSTOP, the 9th and the 19th.
	allBlocked = "fffffffffffbfeff"
)

// isKeeper tells a keeper from a process that is only called so: it is the user's,
// leads a session, has one thread, and blocks every signal, so that fork.ReapSignal
// does no harm to anything else that looks like that. No process can make another one
// look so; one that does it to itself asks for the signal.
func isKeeper(p Proc) bool {
	return p.Name == keeperName && !p.Dead() && p.Session == p.Pid && p.Group == p.Pid && blocksAll(p.Pid)
}

// blocksAll reports whether a process is the user's, has one thread, and blocks every
// signal, as a keeper does from its first act on. For the uid the owner of /proc/PID is no
// answer: files below it are root's for a process that is not dumpable.
func blocksAll(pid int) bool {
	st, _ := procfs.StatusOf(procfs.Path(pid, "status"))
	uids, pids := st["Uid"], st["NSpid"]
	return len(uids) == 4 && uids[1] == strconv.Itoa(os.Geteuid()) &&
		slices.Equal(st["Threads"], []string{"1"}) && slices.Equal(st["SigBlk"], []string{allBlocked}) &&
		(len(pids) == 1 || len(pids) == 2 && pids[1] == "1") // the init of its session's PID namespace
}

// errNoKeeper says that a process does not look like a keeper.
var errNoKeeper = errors.New("is recorded as the session's keeper but is not one: not touched")

// openKeeper opens the keeper's process. proc.ErrGone says that it is no more. A session
// that is just starting has no record yet, or that of a keeper that does not look like
// one yet, or whose command could not be executed, until another is tried: then this
// waits for it. One whose supervisor died in that very moment never will have.
func (f *found) openKeeper(ctx context.Context) (h *proc.Handle, err error) {
	for range 100 {
		h, err = f.tryKeeper()
		starting := f.damage == nil && f.locked && !f.spoke() && (f.record.Tracker == "" || !f.record.Keeper.IsZero())
		if !errors.Is(err, errNoKeeper) && !(errors.Is(err, proc.ErrGone) && starting) || ctx.Err() != nil {
			break
		}
		proc.Pause(10 * time.Millisecond)
		f.refresh()
	}
	return h, err
}

// tryKeeper opens the process that is the keeper now. One that does not look so may have
// been stopped as it began, or the command, for which it sleeps until that executes
// (vfork(2)): they are woken.
func (f *found) tryKeeper() (*proc.Handle, error) {
	if !f.recorded() && !f.orphan {
		v, err := newView()
		if err != nil {
			return nil, err
		}
		v.findKeeper(f)
	}
	h, err := proc.Open(f.record.Keeper)
	if err != nil || isKeeper(h.Process) {
		return h, err
	}
	defer h.Close()
	if v, err := newView(); err == nil && blocksAll(h.Pid) {
		signalAll(append(v.Below(h.Pid), h.Process), unix.SIGCONT)
	}
	return nil, fmt.Errorf("process %d %w", h.Pid, errNoKeeper)
}

// findKeeper looks for the keeper of a session of which no record tells. A process can
// make that of its own session look so, and no other.
func (v *view) findKeeper(f *found) {
	if f.recorded() || f.orphan {
		return
	}
	for _, p := range v.Procs {
		if isKeeper(p) && slices.ContainsFunc(v.Children(p.Pid), func(c int) bool { return sessionOf(c) == f.record.ID }) {
			f.record.Keeper = p.ID
		}
	}
}

// orphans picks the keepers from a snapshot that Store.Survey tells of. What a keeper is
// below answers for it, and so does the program that forked it: a keeper has its parent's
// arguments, for it executes nothing.
func (v *view) orphans(listed []Info) (found []Info) {
	accounted := make(map[ProcID]bool)
	for i := range listed {
		accounted[listed[i].Record.Keeper] = true
	}
	var keepers []Proc
	for _, p := range v.Procs {
		if p.Name == keeperName && (accounted[p.ID] || isKeeper(p)) { // to look closer costs a file
			keepers = append(keepers, p)
		}
	}
	for _, k := range keepers {
		for _, p := range v.Below(k.Pid) {
			accounted[p.ID] = true
		}
	}
	for _, k := range keepers {
		below := slices.DeleteFunc(v.Below(k.Pid), Proc.Dead)
		if accounted[k.ID] || len(below) == 0 {
			continue
		}
		both := []Proc{k, v.Procs[k.Parent]}
		proc.Fill(both)
		argv := both[0].Argv
		if both[1].Name != BrokerName && len(argv) > 0 && slices.Equal(argv, both[1].Argv) {
			continue // its parent forked it
		}
		proc.Fill(below)
		o := Info{Procs: below, Record: Record{Argv: argv, Holder: Holder{Keeper: k.ID}}}
		for _, c := range v.Children(k.Pid) { // another keeper may have the session that it names
			id := sessionOf(c)
			if isID(id) && !slices.ContainsFunc(listed, func(i Info) bool { return i.ID == id }) {
				o.ID = id
			}
		}
		found = append(found, o)
	}
	slices.SortFunc(found, func(a, b Info) int { return a.Record.Keeper.Pid - b.Record.Keeper.Pid })
	return found
}
