//go:build unix

package track

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// keeperWord is what the state file tells.
type keeperWord struct {
	state  fork.KeeperState
	known  bool // a keeper wrote into it
	locked bool // the supervisor or the keeper lives
}

// readState reads what the keeper wrote, from an open state file, which stays
// readable when the session is removed meanwhile. f must not be the file that
// the supervisor holds the lock with: asking would give it up. For that one
// there is readWord.
func readState(f *os.File) keeperWord {
	if f == nil {
		return keeperWord{} // somebody removed it
	}
	w := readWord(f)
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	w.locked = errors.Is(err, unix.EWOULDBLOCK)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	}
	return w
}

// readWord reads what the keeper wrote and leaves the lock alone.
func readWord(f *os.File) keeperWord {
	s, err := fork.ReadKeeperState(f)
	return keeperWord{state: s, known: err == nil}
}
