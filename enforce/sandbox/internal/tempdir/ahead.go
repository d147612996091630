package tempdir

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A file system can take long to make a directory, and longer to remove one: with
// "discard" it waits for the disk. Both is done while a command runs. Ahead makes the
// directory of the next run, and removes that of the last one, which LayAside has put
// out of the way. They wait where no command can get at them. None is used twice:
// only its removal takes from others the descriptors that they were sent.

// The names of the two in Dir.store.
const next, last = "tmp.next", "tmp.last"

// takeNext gives the directory that an earlier run made ahead a name in parent.
func takeNext(parent, store string) (string, error) {
	made := filepath.Join(store, next)
	var st unix.Stat_t
	if unix.Lstat(made, &st) != nil || !usersAlone(&st) {
		return "", unix.ENOENT
	}
	dir := filepath.Join(parent, "zsbx-"+strconv.FormatUint(uint64(rand.Uint32()), 10))
	return dir, os.Rename(made, dir) // which replaces no directory
}

// Ahead makes the directory of the next run, and removes what LayAside left of the
// last one. Without them the next run takes longer.
func (d *Dir) Ahead() {
	if d == nil {
		return
	}
	_ = removeEmpty(filepath.Join(d.store, last))
	if made := filepath.Join(d.store, next); os.Mkdir(made, 0o700) == nil {
		_ = os.Mkdir(filepath.Join(made, "run"), 0o700)
	}
}

// LayAside puts the directory of a session of which nothing runs any more where Ahead
// removes it. It reports false for one that has to be removed at once.
func (d *Dir) LayAside() bool {
	if d == nil || !isEmptyTemp(d.path) || os.Rename(d.path, filepath.Join(d.store, last)) != nil {
		return false
	}
	d.Release()
	return true
}
