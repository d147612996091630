package broker

import (
	"bytes"
	"strconv"
)

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

// party is who a process is when it signals or is signalled: what
// proc_pid_status(5) tells.
type party struct {
	uid, euid, suid int
	capabilities    uint64 // effective
}

func parseParty(status []byte) (id party, ok bool) {
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte{':'})
		f := bytes.Fields(value)
		switch {
		case string(name) == "Uid" && len(f) == 4:
			var errs [3]error
			id.uid, errs[0] = strconv.Atoi(string(f[0]))
			id.euid, errs[1] = strconv.Atoi(string(f[1]))
			id.suid, errs[2] = strconv.Atoi(string(f[2]))
			ok = errs == [3]error{}
		case string(name) == "CapEff" && len(f) == 1:
			id.capabilities, _ = strconv.ParseUint(string(f[0]), 16, 64)
		}
	}
	return id, ok
}

const capabilityKill = 5 // CAP_KILL (capabilities(7))

// maySignal is the kernel's rule (kill(2)), but for SIGCONT within one session of terminals.
func (id party) maySignal(to party) bool {
	return id.capabilities&(1<<capabilityKill) != 0 ||
		id.euid == to.suid || id.euid == to.uid || id.uid == to.suid || id.uid == to.uid
}
