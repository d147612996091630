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
	"github.com/zsbx/zsbx/internal/track/proc"
)

// A session's keeper is recorded. If the record can't be read, the keeper is searched for among
// all processes: a child of it has the session's id in its environment.

const (
	// keeperName is a keeper's name in the kernel. It is checked so that a forged record can't
	// make another process pass as a keeper.
	keeperName = "zsbx-keeper"

	// allBlocked is the mask of a process that blocks all signals. The kernel leaves out
	// SIGKILL (9) and SIGSTOP (19).
	allBlocked = "fffffffffffbfeff"
)

// isKeeper reports whether a process is a keeper and not only named like one: it belongs to the
// user, leads a session, has one thread, and blocks every signal. So fork.ReapSignal would not
// harm any other process that passes. No process can make another one look so; one that makes
// itself look so asks for the signal.
func isKeeper(p Proc) bool {
	return p.Name == keeperName && !p.Dead() && p.Session == p.Pid && p.Group == p.Pid && blocksAll(p.Pid)
}

// blocksAll reports whether a process belongs to the user, has one thread, and blocks every
// signal, as a keeper does from its first step on. It reads the uid from the file status, since
// files below /proc/PID belong to root if the process is not dumpable.
func blocksAll(pid int) bool {
	st, _ := procfs.StatusOf(procfs.Path(pid, "status"))
	uids := st["Uid"]
	if len(uids) != 4 || uids[1] != strconv.Itoa(os.Geteuid()) {
		return false
	}
	if !slices.Equal(st["Threads"], []string{"1"}) || !slices.Equal(st["SigBlk"], []string{allBlocked}) {
		return false
	}
	pids := st["NSpid"]
	isInit := len(pids) == 2 && pids[1] == "1" // of its session's PID namespace
	return len(pids) == 1 || isInit
}

// errNoKeeper says that a process does not look like a keeper.
var errNoKeeper = errors.New("is recorded as the session's keeper but is not one: not touched")

// openKeeper opens the keeper's process. It returns proc.ErrGone if there is none. A session
// that is just starting may have no record yet, or a keeper that does not look like one yet, or
// a keeper that failed and will be replaced by another. Then openKeeper waits, but not for ever,
// since the supervisor may have died at that moment.
func (f *found) openKeeper(ctx context.Context) (h *proc.Handle, err error) {
	for range 100 {
		h, err = f.tryKeeper()
		again := errors.Is(err, errNoKeeper) || errors.Is(err, proc.ErrGone) && f.starting()
		if !again || ctx.Err() != nil {
			break
		}
		proc.Pause(10 * time.Millisecond)
		f.refresh()
	}
	return h, err
}

// starting reports whether the session may still get a keeper.
func (f *found) starting() bool {
	if f.damage != nil || !f.locked || f.spoke() {
		return false
	}
	return f.record.Tracker == "" || !f.record.Keeper.IsZero()
}

// tryKeeper opens the process that is the keeper now. A process that does not look like one may
// have been stopped as it began, or it sleeps because the command was stopped before execve(2)
// (vfork(2)). So tryKeeper sends both SIGCONT.
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

// findKeeper looks for the keeper of a session without a readable record. A process can fake
// that only for its own session's keeper.
func (v *view) findKeeper(f *found) {
	if f.recorded() || f.orphan {
		return
	}
	inSession := func(pid int) bool { return sessionOf(pid) == f.record.ID }
	for _, p := range v.Procs {
		if isKeeper(p) && slices.ContainsFunc(v.Children(p.Pid), inSession) {
			f.record.Keeper = p.ID
		}
	}
}

// orphans returns the keepers in a snapshot that Store.Survey reports. It leaves out keepers
// below another keeper, and those whose parent is still the program that forked them. A keeper
// has that program's arguments, since it executes nothing.
func (v *view) orphans(listed []Info) (found []Info) {
	accounted := make(map[ProcID]bool)
	for i := range listed {
		accounted[listed[i].Record.Keeper] = true
	}
	var keepers []Proc
	for _, p := range v.Procs {
		if p.Name == keeperName && (accounted[p.ID] || isKeeper(p)) { // isKeeper has to read a file
			keepers = append(keepers, p)
		}
	}
	for _, k := range keepers {
		for _, p := range v.Below(k.Pid) {
			accounted[p.ID] = true
		}
	}
	for _, k := range keepers {
		if accounted[k.ID] {
			continue
		}
		o, ok := v.orphan(k)
		if ok {
			o.ID = v.newSession(k, listed)
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b Info) int { return a.Record.Keeper.Pid - b.Record.Keeper.Pid })
	return found
}

// orphan describes the session of a keeper. It returns false if that has no living process, or
// if the keeper's parent is the program that forked it.
func (v *view) orphan(k Proc) (_ Info, ok bool) {
	below := slices.DeleteFunc(v.Below(k.Pid), Proc.Dead)
	if len(below) == 0 {
		return Info{}, false
	}
	both := []Proc{k, v.Procs[k.Parent]}
	proc.Fill(both)
	argv := both[0].Argv
	parent := both[1]
	if parent.Name != BrokerName && len(argv) > 0 && slices.Equal(argv, parent.Argv) {
		return Info{}, false
	}
	proc.Fill(below)
	return Info{Procs: below, Record: Record{Argv: argv, Holder: Holder{Keeper: k.ID}}}, true
}

// newSession returns the session that a keeper's children name, or "". It is none of those
// listed, which have another keeper.
func (v *view) newSession(k Proc, listed []Info) (id string) {
	for _, child := range v.Children(k.Pid) {
		named := sessionOf(child)
		if isID(named) && !slices.ContainsFunc(listed, func(i Info) bool { return i.ID == named }) {
			id = named
		}
	}
	return id
}
