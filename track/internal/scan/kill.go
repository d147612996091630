package scan

import (
	"errors"
	"syscall"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// finding is what became of asking about one process of a snapshot.
type finding uint8

const (
	isUnclear finding = iota
	isGone            // it ended meanwhile: what it answered says nothing
	isOld             // no answer, but older than the session
	isOutside
	isMember
)

// classify asks about a process of a snapshot. A process that has ended, or whose
// pid belongs to another one now, is gone, whatever was answered.
func (h *Search) classify(r proc.Process) finding {
	v := h.Table.Probe(r.Pid).Match(h.intact())
	now, err := h.Table.Lookup(r.Pid)
	switch {
	case errors.Is(err, syscall.ESRCH):
		return isGone
	case err != nil:
		return isUnclear
	case now.ID != r.ID || now.Dead():
		return isGone
	case v == Member || !h.Command.IsZero() && r.ID == h.Command:
		return isMember
	case v == Outside:
		return isOutside
	case h.Began != 0 && r.Start < h.Began:
		return isOld
	}
	return isUnclear
}

// kill kills a member. It is stopped first: a stopped process neither forks
// nor ends by itself, so its pid stays its own while it is asked again. Stopping
// a wrong one can be undone, killing it can't. why says what is to be told if
// the process is still there in the end.
func (h *Search) kill(r proc.Process) (why string) {
	if err := h.Table.Signal(r.Pid, syscall.SIGSTOP); err != nil {
		return h.notKilled(r, err)
	}
	if f := h.classify(r); f != isMember {
		_ = h.Table.Signal(r.Pid, syscall.SIGCONT)
		return "it changed while it was looked at"
	}
	if err := h.Table.Signal(r.Pid, syscall.SIGKILL); err != nil {
		_ = h.Table.Signal(r.Pid, syscall.SIGCONT)
		return h.notKilled(r, err)
	}
	h.kills[r.ID]++
	return "it does not end"
}

// notKilled remembers that a signal was refused, so that the search does not
// go on for the sake of that process alone.
func (h *Search) notKilled(r proc.Process, err error) string {
	if errors.Is(err, syscall.ESRCH) {
		return "it ended meanwhile"
	}
	h.refused[r.ID] = err
	return "it can't be signalled: " + err.Error()
}
