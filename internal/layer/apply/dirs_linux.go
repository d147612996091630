package apply

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/safepath"
	"github.com/zsbx/zsbx/internal/shell"
)

// free returns a number for a round whose name is free in all trees. A command knows its session's id, and may have
// made something by that name.
func (w *work) free() int {
	n := w.j.next()
	taken := func(t *tree) bool {
		ino, _ := inodeAt(t.root.fd(), w.inTree(n)) // or the tree has gone
		return ino != 0
	}
	for slices.ContainsFunc(w.trees, taken) {
		n++
	}
	return n
}

// inTree returns the name of a round's staging directory in a tree.
func (w *work) inTree(round int) string {
	return ".zsbx-try-" + w.l.Session + "-" + strconv.Itoa(round)
}

// makeStages makes the staging directories. The journal names them first.
func (w *work) makeStages(r *round, p *plan) error {
	for n, t := range w.trees {
		if !slices.ContainsFunc(append(p.units, p.modes...), func(u *node) bool { return u.Tree == n }) {
			continue
		}
		old, ino, err := lookAt(t.root.fd())
		if err != nil {
			return err
		}
		r.Dirs = append(r.Dirs, &dir{Tree: n, Path: []byte("."), Ino: ino, Old: old})
		r.Stages = append(r.Stages, &stage{Tree: n, Name: w.inTree(r.N),
			Kept: fmt.Sprintf("%s%d-%d", layer.KeptPrefix, r.N, n)})
	}
	err := w.j.write(w.l)
	for _, s := range r.Stages {
		if err == nil {
			err = w.makeStage(s)
		}
	}
	if err == nil {
		err = w.j.write(w.l)
	}
	for _, s := range r.Stages {
		if err == nil && s.InTree {
			err = w.tryRenames(s, w.trees[s.Tree].stage, "to")
		}
	}
	return err
}

// inTrees makes all staging directories in trees, for a test.
var inTrees = false

// makeStage makes a staging directory: in the layer's directory, which no command can open, or in the tree if
// nothing can be renamed between these, as on two file systems, or with two quotas.
func (w *work) makeStage(s *stage) error {
	err := w.makeDir(s)
	if err == nil {
		err = w.tryRenames(s, w.trees[s.Tree].root.fd(), s.Name)
	}
	if errors.Is(err, unix.EXDEV) || err == nil && inTrees {
		s.InTree = true
		err = w.makeDir(s)
	}
	return err
}

// makeDir makes a staging directory where it is to be. What is made in it inherits nothing of the tree's.
func (w *work) makeDir(s *stage) error {
	dir, name, path := w.place(s)
	step("mkdir staging")
	err := unix.Mkdirat(dir, name, 0o700)
	if err != nil {
		return &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	s.Ino, err = inodeAt(dir, name)
	if err == nil {
		err = w.find(s)
	}
	stage := w.trees[s.Tree].stage
	if err == nil {
		err = removeAttributes(stage, nil)
	}
	if err == nil {
		err = unix.Fchmod(stage, 0o700)
	}
	return err
}

// tryRenames tries whether one can rename and exchange between a staging directory and another one.
func (w *work) tryRenames(s *stage, dir int, name string) error {
	stage := w.trees[s.Tree].stage
	for _, flags := range []uint{unix.RENAME_NOREPLACE, unix.RENAME_EXCHANGE} {
		step("try rename")
		err := unix.Mkdirat(stage, "from", 0o700)
		if err == nil {
			err = unix.Renameat2(stage, "from", dir, name, flags)
		}
		if err != nil {
			path := filepath.Join(w.l.Trees[s.Tree].Path, s.Name)
			return fmt.Errorf("an apply has to rename and exchange files, here with %s: %w", shell.Quote(path), err)
		}
	}
	step("rmdir")
	return errors.Join(unix.Unlinkat(stage, "from", unix.AT_REMOVEDIR), unix.Unlinkat(dir, name, unix.AT_REMOVEDIR))
}

// place returns the directory that a staging directory is in, its name there, and its path.
func (w *work) place(s *stage) (dir int, name, path string) {
	if s.InTree {
		return w.trees[s.Tree].root.fd(), s.Name, filepath.Join(w.l.Trees[s.Tree].Path, s.Name)
	}
	return int(w.kept.Fd()), s.Kept, filepath.Join(w.l.Dir, s.Kept)
}

// find opens a staging directory.
func (w *work) find(s *stage) error {
	t := w.trees[s.Tree]
	closeFD(t.stage)
	t.stage = -1
	t.inTree = s.InTree
	dir, name, path := w.place(s)
	fd, err := safepath.OpenAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil {
		_, ino, err := lookAt(fd)
		if err == nil && ino == s.Ino {
			t.stage = fd
			return nil
		}
		unix.Close(fd)
	}
	return fmt.Errorf("the directory %s, which had the state before an apply, has gone", shell.Quote(path))
}

// findAll opens the staging directories of a round, but of trees that have gone.
func (w *work) findAll(r *round) (err error) {
	for _, s := range r.Stages {
		if err == nil && w.trees[s.Tree].gone == nil {
			err = w.find(s)
		}
	}
	return err
}

// drop removes the staging directories of a round, and forgets it.
func (w *work) drop(r *round) error {
	for _, s := range r.Stages {
		err := w.dropStage(s)
		if err != nil {
			return err
		}
	}
	if r.State == staging {
		w.set(r.Dirs[:len(r.Stages)], false) // the trees themselves
	}
	w.j.Rounds = slices.DeleteFunc(w.j.Rounds, func(o *round) bool { return o == r })
	return w.j.write(w.l)
}

// dropStage removes a staging directory, or what a process may have left that ended while it made one.
func (w *work) dropStage(s *stage) error {
	t := w.trees[s.Tree]
	step("remove staging")
	err := safepath.RemoveAt(int(w.kept.Fd()), s.Kept)
	if err != nil || t.gone != nil {
		return err
	}
	ino, err := inodeAt(t.root.fd(), s.Name)
	if err == nil && s.InTree && s.Ino != 0 && ino == s.Ino {
		return safepath.RemoveAt(t.root.fd(), s.Name)
	}
	_ = unix.Unlinkat(t.root.fd(), s.Name, unix.AT_REMOVEDIR) // if it is empty
	return err
}

// open opens the closed directories of a round to their owner, the outer ones first.
func (w *work) open(r *round) {
	if os.Geteuid() == 0 {
		return
	}
	for _, d := range r.Dirs {
		w.inside(d, func(fd int) error {
			now, _, err := lookAt(fd)
			if err == nil {
				err = d.unchanged(fd)
			}
			if err != nil || now.Mode&dirPerm == dirPerm {
				return err
			}
			step("open directory")
			return unix.Chmod(magic(fd), now.Mode|dirPerm)
		})
	}
}

// set makes directories look as they are to look, the inner ones first. It returns those that somebody has changed
// since. They stay so.
func (w *work) set(dirs []*dir, new bool) (left []*dir) {
	for _, d := range slices.Backward(dirs) {
		look := d.Old
		if new && (d.New != nil || string(d.Path) != ".") {
			look = d.New
		}
		if look == nil {
			continue
		}
		err := w.inside(d, func(fd int) error {
			err := d.unchanged(fd)
			if err != nil {
				return err
			}
			return look.set(fd)
		})
		if err == errChanged {
			left = append(left, d)
		}
		if !new {
			continue
		}
		_ = w.advance(d.Count) // what is left is quick
		closed := look.Mode&dirPerm != dirPerm
		switch {
		case err == nil:
			w.res.Applied += d.Count
		case d.Count > 0 || closed && notSet(err) != errChanged: // it was opened for the apply
			c := layer.Change{Tree: d.Tree, Path: string(d.Path), Op: layer.Modify, Type: os.ModeDir}
			_ = w.res.leave(c, notSet(err))
		}
	}
	return left
}

// unchanged returns errChanged if an open directory has neither the mode and attributes from before an apply nor those
// from after it, nor a mix, which one that was cut off may leave. It may have been opened to its owner.
func (d *dir) unchanged(fd int) error {
	now, _, err := lookAt(fd)
	if err != nil {
		return err
	}
	is := func(l *look) bool { return l != nil && (now.Mode == l.Mode || now.Mode == l.Mode|dirPerm) }
	if !is(d.Old) && !is(d.New) {
		return errChanged
	}
	if d.Old == nil || d.New == nil || d.Old.Attrs == nil {
		return nil
	}
	now.Attrs, err = attributesOf(fd)
	for _, l := range []*look{now, d.Old, d.New} {
		for attr := range l.Attrs {
			acl := strings.HasPrefix(attr, "system.") // it changes with the mode
			value := string(now.Attrs[attr])
			if err == nil && !acl && value != string(d.Old.Attrs[attr]) && value != string(d.New.Attrs[attr]) {
				err = errChanged
			}
		}
	}
	return err
}

// notSet is why a directory does not look as it is to look.
func notSet(err error) error {
	if err == errChanged || errors.Is(err, unix.ESTALE) || errors.Is(err, unix.ENOENT) {
		return errChanged
	}
	return refusal("its mode, owner or attributes can't be set: " + err.Error())
}

// inside calls f with a directory of a round, if it still is there.
func (w *work) inside(d *dir, f func(fd int) error) error {
	fd, err := safepath.OpenAt(w.trees[d.Tree].root.fd(), string(d.Path), anyDir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, ino, err := lookAt(fd)
	if err != nil || ino != d.Ino {
		return errors.Join(err, unix.ESTALE)
	}
	return f(fd)
}

// keepTimes leaves the times of directories as they are in which a change is not made.
func (r *round) keepTimes(stay map[at]bool) {
	for _, d := range r.Dirs {
		if d.New != nil && stay[at{d.Tree, string(d.Path)}] {
			d.New.Mtime = asIs
		}
	}
}
