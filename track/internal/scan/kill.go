package scan

import (
	"errors"
	"syscall"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// classify asks about a process of a snapshot. A process that has ended, or whose
// pid belongs to another one now, is gone, whatever was answered. One that gives no
// answer and is older than the session is outside.
func (h *Search) classify(r proc.Process) Match {
	v := h.ask(r.Pid)
	now, err := h.Table.Lookup(r.Pid)
	switch {
	case errors.Is(err, syscall.ESRCH):
		return Gone
	case err != nil:
		return Unclear
	case now.ID != r.ID || now.Dead():
		return Gone
	case !h.Command.IsZero() && r.ID == h.Command:
		return Member
	case v == Unclear && h.Began != 0 && r.Start < h.Began:
		return Outside
	}
	return v
}

// kill kills a member. It is stopped first: a stopped process neither forks
// nor ends by itself, so its pid stays its own while it is asked again. Stopping
// a wrong one can be undone, killing it can't. why says what is to be told if
// the process is still there in the end; refused, that it can't be signalled.
func (h *Search) kill(r proc.Process) (why string, refused bool) {
	err := h.Table.Signal(r.Pid, syscall.SIGSTOP)
	if err == nil {
		if h.classify(r) != Member {
			_ = h.Table.Signal(r.Pid, syscall.SIGCONT)
			return "it changed while it was looked at", false
		}
		if err = h.Table.Signal(r.Pid, syscall.SIGKILL); err == nil {
			h.kills[r.ID]++
			return "it does not end", false
		}
		_ = h.Table.Signal(r.Pid, syscall.SIGCONT)
	}
	if errors.Is(err, syscall.ESRCH) {
		return "it ended meanwhile", false
	}
	return "it can't be signalled: " + err.Error(), true
}
