package apply

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/safepath"
	"github.com/zsbx/zsbx/internal/shell"
)

// work is an apply or an undo of one layer.
type work struct {
	l     *layer.Layer
	o     Options
	j     *journal
	kept  *os.File // the layer's directory, locked
	trees []*tree
	res   Result

	done, total int // changes count twice: once written, once renamed
}

// tree has the open directories of a tree.
type tree struct {
	gone        error // why it can't be opened: then it has no directories
	root, upper opened
	dev         uint64
	stage       int  // -1 if there is none
	near        bool // one can rename and link between the layer's directory and the tree
}

// refusal is why a change is not made, and changed is why it is a conflict. They are not the end of the others.
type (
	refusal string
	changed string
)

func (r refusal) Error() string { return string(r) }
func (c changed) Error() string { return string(c) }

// leave notes a change that is not made. It returns the errors that are no reason for that, but the end of all.
func (r *Result) leave(c layer.Change, err error) error {
	switch err := err.(type) {
	case refusal:
		c.Refused = string(err)
		r.Refused = append(r.Refused, c)
		return nil
	case changed:
		c.Conflict = string(err)
		r.Conflicts = append(r.Conflicts, c)
		return nil
	}
	return err
}

const gone = changed("it has gone")

// conflictOf says what an error of a system call means if others may have changed the tree meanwhile.
func conflictOf(err error) error {
	errno, is := errors.AsType[unix.Errno](err)
	if !is {
		return err
	}
	switch errno {
	case unix.ENOENT:
		return gone
	case unix.EEXIST:
		return changed("there is something by now")
	case unix.ELOOP, unix.ENOTDIR, unix.EXDEV:
		return changed("a directory above it is a link, another mount or no directory by now")
	case unix.EACCES, unix.EPERM, unix.EROFS, unix.EBUSY:
		return refusal(errno.Error())
	}
	return err
}

// Apply makes changes of a layer real. An error says why it did not end. Then what was applied stays so, and
// Apply goes on, or Undo goes back.
func Apply(l *layer.Layer, o Options) (Result, error) { return apply(l, o, l.Everything) }

func apply(l *layer.Layer, o Options, find func() ([]layer.Change, []layer.Touched, error)) (Result, error) {
	w, err := begin(l, false)
	if err != nil {
		return Result{Left: -1}, err
	}
	defer w.end()
	w.o = o
	w.res.Left = -1
	err = w.goOn()
	if err != nil {
		return w.res, err
	}
	before := w.res.Applied
	changes, touched, err := find()
	if err != nil {
		return w.res, err
	}
	if before == 0 { // else that was applied which they mean
		err = o.check(changes, l.Trees)
		if err != nil {
			return w.res, err
		}
	}
	for i := range changes {
		c := &changes[i]
		if gone := w.trees[c.Tree].gone; gone != nil {
			c.Refused = gone.Error()
		}
	}
	p := newPlan(changes, touched, l.Trees, o)
	w.res = p.res
	w.total = 2 * p.total
	if p.total > 0 {
		err = w.round(p)
	}
	if err == nil && p.ours != nil {
		err = l.Decline(p.ours)
	}
	w.res.Left -= w.res.Applied
	w.res.Applied += before
	return w.res, err
}

// Undo takes back all that was applied. What has changed after that stays, and the error names it.
func Undo(l *layer.Layer) error {
	w, err := begin(l, false)
	if err != nil {
		return err
	}
	defer w.end()
	if len(w.j.Rounds) == 0 {
		return fmt.Errorf("nothing of layer %s was applied", l.Session)
	}
	var errs []error
	for i := len(w.j.Rounds) - 1; i >= 0; i-- {
		err := w.undo(w.j.Rounds[i])
		errs = append(errs, err)
		_, some := errors.AsType[notAll](err)
		if err != nil && !some {
			break
		}
	}
	return errors.Join(errs...)
}

// notAll says what an undo left, of which the rest was taken back.
type notAll string

func (n notAll) Error() string { return "not all was taken back: " + string(n) }

// Drop removes what applies have left in trees, so that nothing can be taken back any more. It is
// called before Layer.Remove.
func Drop(l *layer.Layer) error {
	w, err := begin(l, true)
	if err != nil {
		return err
	}
	defer w.end()
	for _, r := range w.j.Rounds {
		if r.State != done {
			return fmt.Errorf("an apply of layer %s has not ended", l.Session)
		}
	}
	for i := len(w.j.Rounds) - 1; i >= 0; i-- {
		err = errors.Join(err, w.drop(w.j.Rounds[i]))
	}
	return err
}

// begin opens what a layer and its trees have, and locks out others. With gone, all trees may have gone.
func begin(l *layer.Layer, gone bool) (*work, error) {
	kept, err := os.Open(l.Dir)
	if err != nil {
		return nil, err
	}
	w := &work{l: l, kept: kept}
	err = unix.Flock(int(kept.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		err = fmt.Errorf("layer %s is being applied by another process", l.Session)
	}
	if err == nil {
		w.j, err = load(l)
	}
	if err == nil {
		err = w.openTrees(gone)
	}
	if err != nil {
		w.end()
		return nil, err
	}
	return w, nil
}

// openTrees opens the trees. It is an error if there is none, unless gone is set.
func (w *work) openTrees(gone bool) error {
	var errs []error
	for n := range w.l.Trees {
		t, err := openTree(w.l, n)
		if err != nil {
			errs = append(errs, err)
			none := opened{fd: -1, last: -1}
			t = &tree{gone: err, root: none, upper: none, stage: -1}
		}
		w.trees = append(w.trees, t)
	}
	if gone || len(errs) < len(w.trees) {
		return nil
	}
	return errors.Join(errs...)
}

func openTree(l *layer.Layer, n int) (*tree, error) {
	dir, err := l.OpenTree(n)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var st unix.Stat_t
	err = unix.Fstat(int(dir.Fd()), &st)
	if err != nil {
		return nil, err
	}
	root, err := duplicate(dir)
	if err != nil {
		return nil, err
	}
	upper, err := openDir(filepath.Join(l.TreeDir(n), "upper"))
	if err != nil {
		unix.Close(root)
		return nil, err
	}
	return &tree{root: opened{fd: root, last: -1}, upper: opened{fd: upper, last: -1}, dev: st.Dev, stage: -1}, nil
}

// openDir opens a directory by its canonical path.
func openDir(name string) (int, error) {
	f, err := safepath.OpenFile(name, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return duplicate(f)
}

func duplicate(f *os.File) (int, error) { return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0) }

func (w *work) end() {
	for _, t := range w.trees {
		for _, fd := range []int{t.root.fd, t.root.last, t.upper.fd, t.upper.last, t.stage} {
			if fd >= 0 {
				unix.Close(fd)
			}
		}
	}
	w.kept.Close()
}

func (w *work) advance(n int) {
	w.done += n
	if w.o.Progress != nil && w.total > 0 {
		w.o.Progress(w.done/2, w.total/2)
	}
}

// goOn ends what a process before this one began.
func (w *work) goOn() error {
	for i := len(w.j.Rounds) - 1; i >= 0; i-- {
		r := w.j.Rounds[i]
		var err error
		switch r.State {
		case staging:
			err = w.drop(r)
		case undoing:
			err = w.undo(r)
		case committed:
			err = w.finish(r)
			w.res.Applied += r.applied()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// applied counts the changes that were made.
func (r *round) applied() (n int) {
	for _, u := range r.Units {
		if u.made {
			n += u.Count
		}
	}
	for _, d := range r.Dirs {
		n += d.Count
	}
	return n
}

// round does what is planned.
func (w *work) round(p *plan) error {
	r := &round{State: staging}
	w.j.Rounds = append(w.j.Rounds, r)
	err := w.makeStages(r, p)
	if err == nil {
		err = w.stage(r, p)
	}
	if err == nil {
		err = w.sync(r)
	}
	if err == nil {
		err = w.sealAll(r, false)
	}
	if err == nil {
		r.State = committed
		err = w.j.write(w.l)
	}
	if err != nil {
		r.State = staging
		return errors.Join(err, w.drop(r))
	}
	err = w.finish(r)
	w.res.Applied += r.applied()
	return err
}

// makeStages makes the staging directories. The journal names them first.
func (w *work) makeStages(r *round, p *plan) error {
	for n, t := range w.trees {
		if !slices.ContainsFunc(append(p.units, p.dirs...), func(u *node) bool { return u.Tree == n }) {
			continue
		}
		old, ino, err := lookAt(t.root.fd)
		if err != nil {
			return err
		}
		r.Dirs = append(r.Dirs, &dir{Tree: n, Path: []byte("."), Ino: ino, Old: old})
		round := strconv.Itoa(len(w.j.Rounds))
		r.Stages = append(r.Stages, &stage{Tree: n, Name: ".zsbx-try-" + w.l.Session + "-" + round,
			Kept: fmt.Sprintf("%s%s-%d", layer.KeptPrefix, round, n)})
	}
	err := w.free(r)
	if err == nil {
		err = w.j.write(w.l)
	}
	for i := 0; err == nil && i < len(r.Stages); i++ {
		err = w.makeStage(r.Stages[i])
	}
	if err == nil {
		err = w.j.write(w.l)
	}
	for i := 0; err == nil && i < len(r.Stages); i++ {
		err = w.canExchange(r.Stages[i].Tree)
	}
	return err
}

// free checks that nothing has the names of the staging directories. If something has, they are forgotten.
func (w *work) free(r *round) error {
	for _, s := range r.Stages {
		_, err := lstat(w.trees[s.Tree].root.fd, s.Name)
		if err != unix.ENOENT {
			r.Stages = nil
			name := filepath.Join(w.l.Trees[s.Tree].Path, s.Name)
			return fmt.Errorf("%s is in the way: an apply needs that name", shell.Quote(name))
		}
	}
	return nil
}

// makeStage makes a staging directory: in the layer's directory, which no command can open, or in the tree if
// nothing can be renamed between these. What is made in it inherits nothing of the tree's.
func (w *work) makeStage(s *stage) error {
	t := w.trees[s.Tree]
	near, err := w.near(s)
	if err != nil {
		return err
	}
	s.InTree = !near
	t.near = near
	dir, name, path := w.place(s)
	step("mkdir staging")
	err = unix.Mkdirat(dir, name, 0o700)
	if err != nil {
		return &os.PathError{Op: "mkdir", Path: path, Err: err}
	}
	t.stage, err = safepath.OpenAt(dir, name, readDir)
	if err != nil {
		return err
	}
	err = removeAttributes(t.stage, nil)
	if err == nil {
		err = unix.Fchmod(t.stage, 0o700)
	}
	if err == nil {
		_, s.Ino, err = lookAt(t.stage)
	}
	return err
}

// inTrees makes all staging directories in trees, for a test.
var inTrees = false

// near reports whether the layer's directory and a tree are so near that one can rename between them: on one
// file system, one mount and with one quota. A directory that was in the tree is not used again.
func (w *work) near(s *stage) (bool, error) {
	if inTrees {
		return false, nil
	}
	kept := int(w.kept.Fd())
	root := w.trees[s.Tree].root.fd
	step("mkdir near")
	err := unix.Mkdirat(kept, s.Kept, 0o700)
	if err != nil {
		return false, &os.PathError{Op: "mkdir", Path: filepath.Join(w.l.Dir, s.Kept), Err: err}
	}
	step("try rename")
	err = unix.Renameat2(kept, s.Kept, root, s.Name, unix.RENAME_NOREPLACE)
	dir := root
	name := s.Name
	if err != nil {
		dir = kept
		name = s.Kept
	}
	step("rmdir near")
	left := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if err == unix.EXDEV {
		return false, left
	}
	err = cmp.Or(err, left)
	if err != nil {
		err = &os.PathError{Op: "rename to", Path: filepath.Join(w.l.Trees[s.Tree].Path, s.Name), Err: err}
	}
	return true, err
}

// place returns the directory that a staging directory is in, its name there, and its path.
func (w *work) place(s *stage) (dir int, name, path string) {
	if s.InTree {
		return w.trees[s.Tree].root.fd, s.Name, filepath.Join(w.l.Trees[s.Tree].Path, s.Name)
	}
	return int(w.kept.Fd()), s.Kept, filepath.Join(w.l.Dir, s.Kept)
}

// canExchange tries whether the file system can do what an apply needs.
func (w *work) canExchange(n int) error {
	stage := w.trees[n].stage
	step("try exchange")
	err := errors.Join(unix.Mkdirat(stage, "a", 0o700), unix.Mkdirat(stage, "b", 0o700))
	if err != nil {
		return err
	}
	err = unix.Renameat2(stage, "a", stage, "b", unix.RENAME_EXCHANGE)
	if err == nil {
		err = unix.Renameat2(stage, "a", stage, "c", unix.RENAME_NOREPLACE)
	}
	for _, name := range []string{"a", "b", "c"} {
		unix.Unlinkat(stage, name, unix.AT_REMOVEDIR)
	}
	if err != nil {
		return fmt.Errorf("the file system of %s can't exchange files, which an apply needs: %w",
			shell.Quote(w.l.Trees[n].Path), err)
	}
	return nil
}

// find opens the staging directory of a round.
func (w *work) find(s *stage) error {
	t := w.trees[s.Tree]
	if t.gone != nil {
		return t.gone
	}
	if t.stage >= 0 {
		unix.Close(t.stage)
		t.stage = -1
	}
	dir, name, path := w.place(s)
	fd, err := unix.Openat(dir, name, readDir, 0)
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

func (w *work) findAll(r *round) error {
	for _, s := range r.Stages {
		err := w.find(s)
		if err != nil {
			return err
		}
	}
	return nil
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
		w.set(r, false, func(d *dir) bool { return string(d.Path) == "." })
	}
	w.j.Rounds = slices.DeleteFunc(w.j.Rounds, func(o *round) bool { return o == r })
	return w.j.write(w.l)
}

// dropStage removes a staging directory. One that may not have been made has nothing in it.
func (w *work) dropStage(s *stage) error {
	if s.Ino == 0 && w.trees[s.Tree].gone != nil {
		return removeAll(int(w.kept.Fd()), s.Kept)
	}
	if s.Ino == 0 {
		step("rmdir staging")
		err := unix.Unlinkat(w.trees[s.Tree].root.fd, s.Name, unix.AT_REMOVEDIR)
		switch err {
		case nil, unix.ENOENT, unix.ENOTEMPTY, unix.ENOTDIR: // others put something there
		default:
			return err
		}
		return removeAll(int(w.kept.Fd()), s.Kept)
	}
	dir, name, _ := w.place(s)
	st, err := lstat(dir, name)
	if err != nil || st.Ino != s.Ino {
		return nil
	}
	return removeAll(dir, name)
}

// finish renames what a round has staged.
func (w *work) finish(r *round) error {
	err := w.findAll(r)
	if err != nil {
		return err
	}
	w.open(r)
	stay := make(map[at]bool)
	for _, op := range []layer.Op{layer.Add, layer.Modify, layer.Remove} {
		for _, u := range r.Units {
			if u.Op != op {
				continue
			}
			err := w.make(u)
			u.made = err == nil
			u.Not = err != nil
			err = w.res.leave(layer.Change{Tree: u.Tree, Path: string(u.Path), Op: u.Op, Type: u.Type}, err)
			if err != nil {
				return fmt.Errorf("can't apply %s: %w", shell.Quote(string(u.Path)), err)
			}
			if u.Not {
				stay[at{u.Tree, path.Dir(string(u.Path))}] = true
			}
			w.advance(u.Count)
		}
	}
	for _, d := range r.Dirs {
		if d.New != nil && stay[at{d.Tree, string(d.Path)}] {
			d.New.Mtime = asIs
		}
	}
	w.set(r, true, nil)
	for _, d := range r.Dirs {
		w.advance(d.Count)
	}
	err = w.sync(r)
	if err == nil {
		err = w.sealAll(r, true)
	}
	if err != nil {
		return err
	}
	r.State = done
	err = w.j.write(w.l)
	for _, u := range r.Units {
		if err == nil && u.Not && u.Op != layer.Remove {
			err = removeAll(w.trees[u.Tree].stage, u.name())
		}
	}
	return err
}

func (w *work) sync(r *round) error {
	for _, s := range r.Stages {
		if w.trees[s.Tree].gone != nil {
			continue
		}
		step("sync")
		err := unix.Syncfs(w.trees[s.Tree].stage)
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens the closed directories of a round to their owner, the outer ones first.
func (w *work) open(r *round) {
	if os.Geteuid() == 0 {
		return
	}
	r.sort()
	for _, d := range r.Dirs {
		w.inside(d, func(fd int) error {
			now, _, err := lookAt(fd)
			if err != nil || now.Mode&dirPerm == dirPerm {
				return err
			}
			step("open directory")
			return unix.Chmod(magic(fd), now.Mode|dirPerm)
		})
	}
}

// set makes directories of a round look as they are to look, the inner ones first.
func (w *work) set(r *round, new bool, only func(*dir) bool) {
	r.sort()
	for _, d := range slices.Backward(r.Dirs) {
		look := d.Old
		if new && (d.New != nil || string(d.Path) != ".") {
			look = d.New
		}
		if look == nil || only != nil && !only(d) {
			continue
		}
		err := w.inside(d, look.set)
		if err != nil && new {
			d.Count = 0
		}
	}
}

// inside calls f with a directory of a round, if it still is there.
func (w *work) inside(d *dir, f func(fd int) error) error {
	fd, err := safepath.OpenAt(w.trees[d.Tree].root.fd, string(d.Path), anyDir)
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

// sort puts the outer directories first: their paths are shorter. The trees were added first.
func (r *round) sort() {
	slices.SortStableFunc(r.Dirs, func(a, b *dir) int { return len(a.Path) - len(b.Path) })
}
