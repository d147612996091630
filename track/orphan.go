//go:build unix

package track

import (
	"fmt"
	"os"
)

// BrokerName is what the kernel calls a program that goes on to answer for a
// session which it has let go of: its keeper has only the record.
const BrokerName = "zsbx-broker"

// Orphan is a keeper that no session of a store accounts for: its record was
// removed by hand, or lies in another store.
type Orphan struct {
	ID     string // the session, as the environment of its processes names it; "" if none does
	Keeper Proc   // Argv is that of the program that began the session
	Procs  []Proc // the living processes below it
}

// Orphans looks for keepers of this user, in this PID namespace, that outlived
// the program that forked them and that no session of the store accounts for.
// listed is what List gave. Reap takes an orphan's ID; fork.ReapSignal to its
// keeper does the same.
//
// Within a session the answer is always none: a command can't read its user's
// store. So it is on macOS, which has no keepers.
func (s *Store) Orphans(listed []Info) ([]Orphan, error) {
	if os.Getenv(SessionEnv) != "" {
		return nil, nil
	}
	return s.orphans(listed)
}

// orphanIDs are the sessions that only a keeper knows of.
func (s *Store) orphanIDs() ([]string, error) {
	all, err := s.allOrphans()
	var ids []string
	for _, one := range all {
		if one.ID != "" {
			ids = append(ids, one.ID)
		}
	}
	return ids, err
}

func (s *Store) allOrphans() ([]Orphan, error) {
	listed, err := s.List()
	if err != nil {
		return nil, err // what can't be read may account for them
	}
	return s.Orphans(listed)
}

// withOrphan calls do with a session that only its keeper knows of.
func (s *Store) withOrphan(id string, do func(f *found) error) error {
	all, err := s.allOrphans()
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.ID == id {
			return do(&found{dir: &sessionDir{id: id, in: opened{fd: -1}}, holder: Holder{Keeper: one.Keeper.ProcID}, orphan: &one})
		}
	}
	return fmt.Errorf("session %q: %w", id, ErrNotFound)
}

const unprovedOrphan = "the session's record is gone, and with it the keeper's word; the keeper ended when it was asked to, which it does when nothing is left"

// allBlocked is the mask of a process that blocks all signals, of which the
// kernel leaves out SIGKILL and SIGSTOP.
const allBlocked = ^uint64(1<<(9-1) | 1<<(19-1))
