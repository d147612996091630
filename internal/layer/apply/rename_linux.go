package apply

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

const tampered = "somebody has changed it in the staging directory"

var errUnstaged = changed("it has gone from the staging directory")

// move renames what belongs into a place from the staging directory there, and what belongs out of it from there to the
// staging directory, unless that was done before. A mark without an inode is nothing. What came out is put back if it
// is not what belongs out. sealed says how what belongs in was noted, nil if it was not.
func (w *work) move(u *unit, in, out mark, sealed *mark) error {
	t := w.trees[u.Tree]
	if t.gone != nil {
		return t.gone
	}
	name := u.name()
	dir, base, err := t.root.above(string(u.Path))
	if err != nil {
		return reasonOf(err)
	}
	staged, err := inodeAt(t.stage, name)
	if err != nil {
		return err
	}
	moved := staged != in.Ino // before
	if !moved && in.Ino != 0 {
		err = t.intact(name, in, sealed)
	}
	if err != nil {
		return err
	}
	if out.Ino == 0 {
		return put(t.stage, name, dir, base, in, moved)
	}
	flags := uint(unix.RENAME_EXCHANGE)
	if in.Ino == 0 {
		flags = unix.RENAME_NOREPLACE
	}
	switch {
	case moved && staged == 0:
		return errUnstaged
	case !moved:
		step("rename out")
		err = unix.Renameat2(dir, base, t.stage, name, flags)
	}
	if err != nil {
		return reasonOf(err)
	}
	got, err := markOf(t.stage, name)
	if err == nil && got == out {
		return nil
	}
	if moved && t.inTree {
		return errors.New(tampered)
	}
	return putBack(t.stage, name, dir, base, in, flags)
}

// intact returns an error if what belongs into a place is not as it was noted. Only in a tree somebody can change it.
func (t *tree) intact(name string, in mark, sealed *mark) error {
	if !t.inTree {
		return nil
	}
	var now mark
	var err error
	if sealed == nil {
		now, err = markOf(t.stage, name)
	} else {
		now, err = seal(t.stage, name, true)
		in = *sealed
	}
	if err != nil || now != in {
		return changed(tampered)
	}
	return nil
}

// put renames what is staged to a name that must be free, or looks whether it is there if that was done before.
func put(stage int, name string, dir int, base string, in mark, moved bool) error {
	if !moved {
		step("rename in")
		return reasonOf(unix.Renameat2(stage, name, dir, base, unix.RENAME_NOREPLACE))
	}
	ino, err := inodeAt(dir, base)
	if err == nil && ino != in.Ino {
		err = errGone
	}
	return err
}

// putBack takes a rename back of something that has changed.
func putBack(stage int, name string, dir int, base string, in mark, flags uint) error {
	step("rename back")
	err := unix.Renameat2(stage, name, dir, base, flags)
	if err == unix.ENOENT && flags == unix.RENAME_EXCHANGE { // what was put there was removed
		err = unix.Renameat2(stage, name, dir, base, unix.RENAME_NOREPLACE)
	}
	ino, errBack := inodeAt(stage, name)
	if err == nil && errBack == nil && ino != 0 && ino != in.Ino && flags == unix.RENAME_EXCHANGE {
		// Somebody has put something newer there meanwhile.
		err = unix.Renameat2(stage, name, dir, base, flags)
	}
	if err != nil {
		return fmt.Errorf("it has changed, and can't be put back from the staging directory, where it is %s: %w",
			name, err)
	}
	return errChanged
}

// sealNew notes how what is new looks in staging directories in trees, which commands of other sessions can reach.
func (w *work) sealNew(r *round) error {
	for _, u := range r.Units {
		t := w.trees[u.Tree]
		if !t.inTree || u.New.Ino == 0 {
			continue
		}
		m, err := seal(t.stage, u.name(), true)
		if err != nil {
			return err
		}
		u.Staged = &m
	}
	return nil
}

// sealDone notes how what was there before looks in these directories, and how what is new looks in its place.
func (w *work) sealDone(r *round) error {
	for _, u := range r.Units {
		t := w.trees[u.Tree]
		if u.Not {
			continue
		}
		u.Placed = w.placed(u)
		if !t.inTree || u.Old.Ino == 0 {
			continue
		}
		m, err := seal(t.stage, u.name(), true)
		if err != nil && err != unix.ENOENT {
			return err
		}
		u.Kept = &m
	}
	return nil
}

// placed returns how what is new looks in its place, nil if nothing is there.
func (w *work) placed(u *unit) *mark {
	dir, base, err := w.trees[u.Tree].root.above(string(u.Path))
	if err != nil || u.New.Ino == 0 {
		return nil
	}
	m, err := seal(dir, base, false)
	if err != nil {
		return nil
	}
	return &m
}

// noteSince notes what has changed since it was put into its place. Times of status changes tell that only before
// something is taken back: names of one file have the same.
func (w *work) noteSince(r *round) {
	for _, u := range r.Units {
		now := w.placed(u)
		u.Since = u.Placed != nil && now != nil && *now != *u.Placed
	}
}
