package track

import (
	"errors"
	"syscall"
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

// judge asks about a process of a snapshot. A process that has ended, or whose
// pid belongs to another one now, is gone, whatever was answered.
func (h *hunt) judge(r row) finding {
	v := h.table.probe(r.Pid).verdict(h.intact())
	now, err := h.table.lookup(r.Pid)
	switch {
	case errors.Is(err, syscall.ESRCH):
		return isGone
	case err != nil:
		return isUnclear
	case now.ProcID != r.ProcID || now.zombie:
		return isGone
	case v == member || !h.command.IsZero() && r.ProcID == h.command:
		return isMember
	case v == outside:
		return isOutside
	case h.began != 0 && r.Start < h.began:
		return isOld
	}
	return isUnclear
}

// strike kills a member. It is stopped first: a stopped process neither forks
// nor ends by itself, so its pid stays its own while it is asked again. Stopping
// a wrong one can be undone, killing it can't. why says what is to be told if
// the process is still there in the end.
func (h *hunt) strike(r row) (why string) {
	if err := h.table.signal(r.Pid, syscall.SIGSTOP); err != nil {
		return h.notStruck(r, err)
	}
	if f := h.judge(r); f != isMember {
		_ = h.table.signal(r.Pid, syscall.SIGCONT)
		return "it changed while it was looked at"
	}
	if err := h.table.signal(r.Pid, syscall.SIGKILL); err != nil {
		_ = h.table.signal(r.Pid, syscall.SIGCONT)
		return h.notStruck(r, err)
	}
	h.struck[r.ProcID]++
	return "it does not end"
}

// notStruck remembers that a signal was refused, so that the search does not
// go on for the sake of that process alone.
func (h *hunt) notStruck(r row, err error) string {
	if errors.Is(err, syscall.ESRCH) {
		return "it ended meanwhile"
	}
	h.refused[r.ProcID] = err
	return "it can't be signalled: " + err.Error()
}
