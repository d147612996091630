package apply

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
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
	inTree      bool // the staging directory is in the tree
}

// Apply makes changes of a layer real. An error says why it did not end. Then what was applied stays so, and
// Apply goes on, or Undo goes back.
func Apply(l *layer.Layer, o Options) (Result, error) { return apply(l, o, l.Everything) }

func apply(l *layer.Layer, o Options, find func() ([]layer.Change, []layer.Touched, error)) (Result, error) {
	w, err := begin(l, o, false)
	if err != nil {
		return Result{Left: -1}, err
	}
	defer w.end()
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
	wrong := o.check(changes, l.Trees)
	if wrong != nil && before == 0 { // else that was applied which they mean
		return w.res, wrong
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

// Undo takes back all that was applied. What has changed after that stays, and the error names it. Of the options
// only Stopped counts.
func Undo(l *layer.Layer, o Options) error {
	w, err := begin(l, o, false)
	if err != nil {
		return err
	}
	defer w.end()
	if len(w.j.Rounds) == 0 {
		return fmt.Errorf("nothing of layer %s was applied", l.Session)
	}
	var left []string
	for i := len(w.j.Rounds) - 1; i >= 0; i-- {
		names, err := w.undo(w.j.Rounds[i])
		left = append(left, names...)
		if err != nil {
			return err
		}
	}
	return notAll(left)
}

// notAll returns the error for what an undo left, nil if that is nothing.
func notAll(left []string) error {
	if left == nil {
		return nil
	}
	return errors.New("not all was taken back: " + strings.Join(left, ", "))
}

// Drop removes what applies have left in trees, so that nothing can be taken back any more. It is
// called before Layer.Remove. Only with cut it drops an apply that has not ended: what that has changed so far stays.
// With cut the journal need not be readable: then what applies have left in trees stays, too.
func Drop(l *layer.Layer, cut bool) error {
	w, err := begin(l, Options{}, true)
	if cut && errors.Is(err, errUnread) {
		return nil
	}
	if err != nil {
		return err
	}
	defer w.end()
	if w.j.pending() && !cut {
		return fmt.Errorf("an apply of layer %s has not ended", l.Session)
	}
	for i := len(w.j.Rounds) - 1; i >= 0; i-- {
		err = errors.Join(err, w.drop(w.j.Rounds[i]))
	}
	return err
}

// begin opens what a layer and its trees have, and locks out others. With gone, all trees may have gone.
func begin(l *layer.Layer, o Options, gone bool) (*work, error) {
	kept, err := os.Open(l.Dir)
	if err != nil {
		return nil, err
	}
	w := &work{l: l, o: o, kept: kept}
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
		t := openTree(w.l, n)
		w.trees = append(w.trees, t)
		if t.gone == nil {
			gone = true // but not this one
		}
		errs = append(errs, t.gone)
	}
	if gone {
		return nil
	}
	return errors.Join(errs...)
}

func openTree(l *layer.Layer, n int) *tree {
	root, err := l.OpenTree(n)
	var upper *os.File
	if err == nil {
		upper, err = l.OpenUpper(n)
	}
	t := &tree{root: opened{top: root, last: -1}, upper: opened{top: upper, last: -1}, stage: -1}
	st, unseen := lstat(t.root.fd(), ".")
	t.gone = cmp.Or(err, unseen)
	t.dev = st.Dev
	return t
}

func (w *work) end() {
	for _, t := range w.trees {
		t.root.close()
		t.upper.close()
		closeFD(t.stage)
	}
	w.kept.Close()
}

// advance tells how many changes were written or renamed, and returns ErrStopped if that is to be the last.
func (w *work) advance(n int) error {
	w.done += n
	if w.o.Progress != nil && w.total > 0 {
		w.o.Progress(w.done/2, w.total/2)
	}
	return w.stopped()
}

func (w *work) stopped() error {
	if w.o.Stopped != nil && w.o.Stopped() {
		return ErrStopped
	}
	return nil
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
			var left []string
			left, err = w.undo(r)
			err = cmp.Or(err, notAll(left))
		case committed:
			err = w.finish(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// round does what is planned.
func (w *work) round(p *plan) error {
	r := &round{N: w.free(), State: staging}
	w.j.Rounds = append(w.j.Rounds, r)
	err := w.makeStages(r, p)
	if err == nil {
		err = w.stage(r, p)
	}
	if err == nil {
		err = w.sync(r)
	}
	if err == nil {
		err = w.sealNew(r)
	}
	if err == nil {
		r.State = committed
		err = w.j.write(w.l)
	}
	if err != nil {
		r.State = staging
		return errors.Join(err, w.drop(r))
	}
	return w.finish(r)
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
			if err == nil && u.Op == op {
				err = w.make(u, stay)
			}
		}
	}
	if err != nil {
		return err
	}
	r.keepTimes(stay)
	w.set(r.Dirs, true)
	err = w.sync(r)
	if err == nil {
		err = w.sealDone(r)
	}
	if err != nil {
		return err
	}
	r.State = done
	return w.j.write(w.l)
}

// make renames one unit into its place. stay gets the directory of one that is not made.
func (w *work) make(u *unit, stay map[at]bool) error {
	err := w.move(u, u.New, u.Old, u.Staged)
	if err == nil {
		w.res.Applied += u.Count
		return w.advance(u.Count)
	}
	u.Not = true
	stay[at{u.Tree, path.Dir(string(u.Path))}] = true
	err = w.res.leave(layer.Change{Tree: u.Tree, Path: string(u.Path), Op: u.Op, Type: u.Type}, err)
	if err != nil {
		return fmt.Errorf("can't apply %s: %w", shell.Quote(string(u.Path)), err)
	}
	return w.advance(u.Count)
}

// undo takes back one round. It returns what stays, and why.
func (w *work) undo(r *round) (left []string, err error) {
	if r.State == staging {
		return nil, w.drop(r)
	}
	err = w.findAll(r)
	if err != nil {
		return nil, err
	}
	if r.State == done {
		w.noteSince(r)
	}
	r.State = undoing
	err = w.j.write(w.l)
	if err != nil {
		return nil, err
	}
	w.open(r)
	var stay []*unit
	for _, u := range slices.Backward(r.Units) {
		err := w.stopped()
		if err != nil {
			return nil, err
		}
		err = w.back(u)
		if err != nil {
			stay = append(stay, u)
			left = append(left, w.why(u.Tree, u.Path, err))
		}
	}
	for _, d := range w.set(r.Dirs, false) {
		left = append(left, w.why(d.Tree, d.Path, errChanged))
	}
	err = w.sync(r)
	if err != nil {
		return nil, err
	}
	if stay != nil {
		r.State = done
		r.Units = stay
		return left, w.j.write(w.l)
	}
	r.State = staging
	err = w.j.write(w.l)
	if err == nil {
		err = w.drop(r)
	}
	return left, err
}

// why names what an undo leaves.
func (w *work) why(tree int, path []byte, err error) string {
	full := filepath.Join(w.l.Trees[tree].Path, string(path))
	return fmt.Sprintf("%s (%v)", shell.Quote(full), err)
}

// back takes back one unit, unless it was not done or was taken back before.
func (w *work) back(u *unit) error {
	if u.Not {
		return nil
	}
	if u.Since {
		return errChanged
	}
	if u.Op == layer.Remove && w.neverOut(u) {
		return nil
	}
	err := w.move(u, u.Old, u.New, u.Kept)
	if u.Op == layer.Add && err == errGone {
		return nil // somebody has removed it
	}
	removed := u.Op == layer.Modify && (err == errGone || err == errUnstaged)
	if removed && w.move(u, u.Old, mark{}, u.Kept) == nil { // now, or before
		return nil
	}
	return err
}

// neverOut reports whether what is to be removed was not taken out, or is back. In a tree somebody else may have
// taken it from the staging directory.
func (w *work) neverOut(u *unit) bool {
	t := w.trees[u.Tree]
	if t.gone != nil || t.inTree {
		return false
	}
	staged, err := inodeAt(t.stage, u.name())
	return err == nil && staged == 0
}

// sync writes to the disk what a round has in its trees.
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
