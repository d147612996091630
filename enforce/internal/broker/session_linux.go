package broker

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/procfs"
)

// session is whose processes a command may signal: all below top, which is the
// keeper, or without one the command itself.
type session struct {
	Top    int  // its number
	Keeper bool // it is a keeper, and no part of the session
	pidfd  int  // of top, whose number is its own until it has been waited for; 0 before the first look
}

// theSession finds out which one it is.
func (m *mediator) theSession() session {
	m.sessionMu.Lock()
	defer m.sessionMu.Unlock()
	s := &m.session
	switch {
	case s.Top != 0:
	case m.process == nil:
	case m.process.KeeperPid != 0:
		s.Top, s.Keeper = m.process.KeeperPid, true
	default:
		s.Top = m.process.Pid
	}
	if s.Top != 0 && s.pidfd <= 0 {
		s.pidfd, _ = unix.PidfdOpen(s.Top, 0)
	}
	return *s
}

func (s *session) close() {
	if s.pidfd > 0 {
		unix.Close(s.pidfd)
	}
}

// member reports whether a process is the session's, if its number is kept from being used
// again by a pidfd that is still good afterwards. Where it changes
// parents just then, it is looked at again.
func (m *mediator) member(pid int) bool {
	s := m.theSession()
	if s.Top == 0 || pid == s.Top && s.Keeper {
		return false
	}
	if s.pidfd <= 0 {
		return false
	}
	parent := func(pid int) (int, bool) { st, ok := statOf(pid); return st.Parent, ok }
	for range 4 {
		if descends(pid, s.Top, parent) {
			return unix.PidfdSendSignal(s.pidfd, 0, nil, 0) != unix.ESRCH
		}
	}
	return false
}

// maxDepth is how many generations below the session's top a process may be to
// be signalled.
const maxDepth = 1 << 12

// descends reports whether a process is below top, by the numbers of parents that
// parent gives. What it gives may be about another process that got the number
// meanwhile, but for top's and pid's own: so each is asked twice, in opposite
// order. A parent that is the same both times lived all the while between
// (it would have been replaced by a subreaper else), and so what was said by its number in between
// was said of it.
func descends(pid, top int, parent func(int) (int, bool)) bool {
	chain := []int{pid}
	for at := pid; at != top; {
		up, ok := parent(at)
		if !ok || up <= 0 || len(chain) > maxDepth {
			return false
		}
		chain, at = append(chain, up), up
	}
	for i := len(chain) - 2; i >= 0; i-- {
		if up, ok := parent(chain[i]); !ok || up != chain[i+1] {
			return false
		}
	}
	return true
}

func statOf(pid int) (procfs.Stat, bool) {
	b, _ := readProc("/proc/" + strconv.Itoa(pid) + "/stat")
	s, err := procfs.ParseStat(b)
	return s, err == nil
}
