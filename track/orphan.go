package track

import "os"

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

func (s *Store) allOrphans() ([]Orphan, error) {
	listed, err := s.List()
	if err != nil {
		return nil, err // what can't be read may account for them
	}
	return s.Orphans(listed)
}

const unprovedOrphan = "the session's record is gone, and with it the keeper's word; the keeper ended when it was asked to, which it does when nothing is left"
