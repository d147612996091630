package apply

import (
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/shell"
)

// make renames one unit into its place, unless that was done before.
func (w *work) make(u *unit) error {
	t := w.trees[u.Tree]
	dir, base, err := t.root.above(string(u.Path))
	if err != nil {
		return conflictOf(err)
	}
	if u.Op == layer.Add {
		err = t.intact(u, u.Staged)
		if err != nil {
			return err
		}
		err = put(t.stage, u.name(), dir, base)
		if err != gone {
			return err
		}
		st, err := lstat(dir, base)
		if err == nil && st.Ino == u.New.Ino {
			return nil
		}
		return gone
	}
	staged, err := lstat(t.stage, u.name())
	if err != nil && err != unix.ENOENT {
		return err
	}
	there := err == nil
	switch {
	case u.Op == layer.Remove:
		return take(dir, base, t.stage, u.name(), unix.RENAME_NOREPLACE, there, u.Old, u.New)
	case there && staged.Ino == u.New.Ino:
		err = t.intact(u, u.Staged)
		if err != nil {
			return err
		}
		return take(dir, base, t.stage, u.name(), unix.RENAME_EXCHANGE, false, u.Old, u.New)
	case there:
		return take(dir, base, t.stage, u.name(), unix.RENAME_EXCHANGE, true, u.Old, u.New)
	}
	return gone
}

// sealAll notes how what is in a staging directory in a tree looks, which commands of other sessions can reach. Before
// the renames it is what is new, and after them what was there before.
func (w *work) sealAll(r *round, done bool) error {
	for _, s := range r.Stages {
		for _, u := range r.Units {
			missing := u.Not || u.Op == layer.Remove && !done || u.Op == layer.Add && done
			if !s.InTree || u.Tree != s.Tree || missing {
				continue
			}
			m, err := seal(w.trees[s.Tree].stage, u.name())
			if err == unix.ENOENT {
				continue
			}
			if err != nil {
				return err
			}
			if done {
				u.Kept = m
			} else {
				u.Staged = m
			}
		}
	}
	return nil
}

// intact reports whether what is in the staging directory is as it was noted. Nothing may have been noted.
func (t *tree) intact(u *unit, want *mark) error {
	if want == nil {
		return nil
	}
	m, err := seal(t.stage, u.name())
	if err == unix.ENOENT { // it was renamed before
		return nil
	}
	if err != nil || *m != *want {
		return changed("somebody has changed it in the staging directory")
	}
	return nil
}

// put renames what is staged to a name that must be free.
func put(stage int, name string, dir int, base string) error {
	step("rename in")
	return conflictOf(unix.Renameat2(stage, name, dir, base, unix.RENAME_NOREPLACE))
}

// take moves what a tree has into the staging directory, and puts it back if it is not what is
// wanted. With RENAME_EXCHANGE it puts there what the staging directory has. With moved, it was moved before.
func take(dir int, base string, stage int, name string, flags uint, moved bool, want, put mark) error {
	if !moved {
		step("rename out")
		err := unix.Renameat2(dir, base, stage, name, flags)
		if err != nil {
			return conflictOf(err)
		}
	}
	got, err := markOf(stage, name)
	if err == nil && got == want {
		return nil
	}
	step("rename back")
	err = unix.Renameat2(stage, name, dir, base, flags)
	if err == unix.ENOENT && flags == unix.RENAME_EXCHANGE { // what was put there was removed
		err = unix.Renameat2(stage, name, dir, base, unix.RENAME_NOREPLACE)
	}
	st, errBack := lstat(stage, name)
	if err == nil && errBack == nil && st.Ino != put.Ino && flags == unix.RENAME_EXCHANGE {
		// Somebody has put something newer there meanwhile.
		err = unix.Renameat2(stage, name, dir, base, flags)
	}
	if err != nil {
		return fmt.Errorf("it has changed, and can't be put back from the staging directory, where it is %s: %w",
			name, err)
	}
	return changed("it has changed")
}

// undo takes back one round.
func (w *work) undo(r *round) error {
	if r.State == staging {
		return w.drop(r)
	}
	r.State = undoing
	err := w.j.write(w.l)
	for i := 0; err == nil && i < len(r.Stages); i++ {
		if w.trees[r.Stages[i].Tree].gone == nil { // else its units can't be taken back
			err = w.find(r.Stages[i])
		}
	}
	if err != nil {
		return err
	}
	w.open(r)
	var stay []*unit
	var names []string
	for i := len(r.Units) - 1; i >= 0; i-- {
		u := r.Units[i]
		if u.Not {
			continue
		}
		err := w.back(u)
		if err != nil {
			stay = append(stay, u)
			full := filepath.Join(w.l.Trees[u.Tree].Path, string(u.Path))
			names = append(names, fmt.Sprintf("%s (%v)", shell.Quote(full), err))
		}
	}
	w.set(r, false, nil)
	err = w.sync(r)
	if err != nil {
		return err
	}
	if stay != nil {
		r.State = done
		r.Units = stay
		err := w.j.write(w.l)
		if err != nil {
			return err
		}
		return notAll(strings.Join(names, ", "))
	}
	r.State = staging
	err = w.j.write(w.l)
	if err != nil {
		return err
	}
	return w.drop(r)
}

// back takes back one unit, unless it was not done or was taken back before.
func (w *work) back(u *unit) error {
	t := w.trees[u.Tree]
	if t.gone != nil {
		return t.gone
	}
	name := u.name()
	staged, err := lstat(t.stage, name)
	if err != nil && err != unix.ENOENT {
		return err
	}
	there := err == nil
	if u.Op == layer.Remove && !there {
		return nil
	}
	dir, base, err := t.root.above(string(u.Path))
	if err == unix.ENOENT && u.Op == layer.Add {
		return nil // somebody has removed it
	}
	if err != nil {
		return conflictOf(err)
	}
	_, err = lstat(dir, base)
	if err == unix.ENOENT && u.Op == layer.Add {
		return nil
	}
	if there && staged.Ino != u.New.Ino {
		err = t.intact(u, u.Kept)
		if err != nil {
			return err
		}
	}
	switch {
	case u.Op == layer.Remove:
		return put(t.stage, name, dir, base)
	case u.Op == layer.Add:
		return take(dir, base, t.stage, name, unix.RENAME_NOREPLACE, there, u.New, u.Old)
	case !there:
		return changed("what was there before has gone")
	}
	return take(dir, base, t.stage, name, unix.RENAME_EXCHANGE, staged.Ino == u.New.Ino, u.New, u.Old)
}
