package apply

import (
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/safepath"
	"github.com/zsbx/zsbx/internal/shell"
)

var errNotAsSeen = refusal("the layer has something else there by now")

// stager writes what is new into the staging directories.
type stager struct {
	*work

	r     *round
	p     *plan
	links map[inode]string // where in the staging directory a file is that has more than one name
	dirs  map[at]*dir
}

type inode struct {
	tree int
	ino  uint64
}

// stage writes all that is new. Then the round has what is to be renamed.
func (w *work) stage(r *round, p *plan) error {
	s := &stager{work: w, r: r, p: p, links: map[inode]string{}, dirs: map[at]*dir{}}
	for _, d := range r.Dirs {
		s.dirs[at{d.Tree, "."}] = d
	}
	for i, n := range p.units {
		u := &unit{N: i, Tree: n.Tree, Path: []byte(n.Path), Op: n.Op, Type: n.Type, Count: 1}
		err := s.unit(n, u)
		if err == nil && u.Op != "" {
			r.Units = append(r.Units, u)
		}
		err = s.wrote(n, s.trees[n.Tree].stage, u.name(), err)
		if err != nil {
			return err
		}
	}
	for _, n := range p.modes {
		err := s.wrote(n, -1, "", s.change(n))
		if err != nil {
			return err
		}
	}
	for i := range p.times {
		err := s.time(&p.times[i])
		if err != nil {
			return err
		}
	}
	r.keepTimes(p.stay)
	r.sort()
	return nil
}

// wrote notes that a change was written, or why it is not made. Then what was staged of it is removed. It returns
// the errors that end all.
func (s *stager) wrote(n *node, dir int, name string, err error) error {
	if err == nil {
		return s.advance(1)
	}
	err = s.res.leave(*n.Change, err)
	if err == ErrStopped {
		return err
	}
	if err != nil {
		return fmt.Errorf("can't write %s: %w", shell.Quote(n.Path), err)
	}
	s.p.stay[place(n.Change).above()] = true
	if name == "" {
		return nil
	}
	return safepath.RemoveAt(dir, name)
}

// unit compares what is in a tree with what the layer saw, and writes what is to be there.
func (s *stager) unit(n *node, u *unit) error {
	t := s.trees[n.Tree]
	dst, base, err := t.root.above(n.Path)
	if err != nil {
		return reasonOf(err)
	}
	err = s.before(n, u, dst, base)
	if err != nil || u.Op == "" {
		return err
	}
	_, err = s.note(at{n.Tree, path.Dir(n.Path)})
	if goes(n.Change) {
		u.Count = n.count()
		s.done += u.Count - 1
	}
	if err != nil || u.Op == layer.Remove {
		return err
	}
	src, _, err := t.upper.above(n.Path)
	if err == nil {
		err = s.entry(src, t.stage, n, u.name(), u)
	}
	if err == nil {
		u.New, err = markOf(t.stage, u.name())
	}
	return err
}

// before notes what is there. It is a conflict if it is not what the layer saw, unless that was decided.
func (s *stager) before(n *node, u *unit, in int, base string) error {
	st, err := lstat(in, base)
	switch {
	case err == unix.ENOENT && n.Op == layer.Add:
		return nil
	case err == unix.ENOENT && n.forced:
		u.Op = layer.Add
		if n.Op == layer.Remove {
			u.Op = ""
		}
		return nil
	case err != nil:
		return reasonOf(err)
	}
	if n.Op == layer.Add && !n.forced {
		return errThere
	}
	if n.Op == layer.Add {
		u.Op = layer.Modify
	}
	if st.Dev != s.trees[n.Tree].dev {
		return refusal("it is on another file system than " + s.l.Trees[n.Tree].Path)
	}
	seen := make(map[string]*node)
	n.seen(n.Path, seen)
	forced := make(map[string]bool) // a conflict that was decided, and all below it
	u.Old.Ino = st.Ino
	err = walk(in, base, ".", 0, func(rel string, in int, name string, now *unix.Stat_t) error {
		u.Old.add(rel, now)
		b := seen[rel]
		forced[rel] = forced[path.Dir(rel)] || b != nil && b.forced
		if forced[rel] || b != nil && unchanged(in, name, now, b.Was) {
			return nil
		}
		return errChanged
	})
	if err == nil && isDir(&st) && st.Mode&dirPerm != dirPerm { // it can only be moved once that is changed
		s.r.Dirs = append(s.r.Dirs, &dir{Tree: n.Tree, Path: u.Path, Ino: st.Ino, Old: lookOf(&st)})
	}
	return reasonOf(err)
}

// seen collects a node and those below it, by paths relative to top.
func (n *node) seen(top string, all map[string]*node) {
	rel := "."
	if n.Path != top {
		rel = n.Path[len(top)+1:]
	}
	all[rel] = n
	for _, b := range n.below {
		b.seen(top, all)
	}
}

// note notes how a directory looks in which something is renamed, and how it is to look then: as in the layer
// if all that it has there is made real.
func (s *stager) note(p at) (*dir, error) {
	d := s.dirs[p]
	if d != nil && d.New != nil {
		return d, nil
	}
	t := s.trees[p.tree]
	if d == nil {
		d = &dir{Tree: p.tree, Path: []byte(p.path)}
		fd, err := safepath.OpenAt(t.root.fd(), p.path, anyDir)
		if err != nil {
			return nil, reasonOf(err)
		}
		defer unix.Close(fd)
		d.Old, d.Ino, err = lookAt(fd)
		if err != nil {
			return nil, err
		}
	}
	new := &look{Mtime: asIs}
	upper, err := safepath.OpenAt(t.upper.fd(), p.path, anyDir)
	if err == nil {
		defer unix.Close(upper)
		new, _, err = lookAt(upper)
		closed := d.Old.Mode&dirPerm != dirPerm && new.Mode&dirPerm == dirPerm
		if n := s.p.dirs[p]; closed && (n == nil || n.Op != layer.Modify) {
			return nil, changed(fmt.Sprintf("its directory has been closed: mode %04o", d.Old.Mode))
		}
	}
	new.Mode = d.Old.Mode
	d.New = new
	if s.dirs[p] == nil {
		s.dirs[p] = d
		s.r.Dirs = append(s.r.Dirs, d)
	}
	if err == unix.ENOTDIR { // what is removed has none in the layer
		err = nil
	}
	return d, err
}

// change notes that a directory gets another mode or other attributes.
func (s *stager) change(n *node) error {
	t := s.trees[n.Tree]
	fd, err := safepath.OpenAt(t.root.fd(), n.Path, anyDir)
	if err != nil {
		return reasonOf(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && !n.forced && !unchanged(fd, ".", &st, n.Was) {
		err = errChanged
	}
	if err != nil {
		return err
	}
	upper, err := safepath.OpenAt(t.upper.fd(), n.Path, anyDir)
	if err != nil {
		return err
	}
	defer unix.Close(upper)
	d, err := s.note(place(n.Change))
	if err != nil {
		return err
	}
	new, _, err := lookAt(upper)
	if err != nil {
		return err
	}
	d.New.Mode = new.Mode
	d.Count = 1
	d.Old.Attrs, err = attributesOf(fd)
	if err == nil {
		d.New.Attrs, err = attributesOf(upper)
	}
	return err
}

// time notes that a directory gets the time that it has in the layer, unless it changed outside.
func (s *stager) time(t *layer.Touched) error {
	if s.trees[t.Tree].gone != nil {
		return nil
	}
	p := at{t.Tree, t.Path}
	if d := s.dirs[p]; d != nil && d.New != nil {
		return nil // something in it changes
	}
	d, err := s.note(p)
	if _, is := err.(reason); is {
		return nil
	}
	if err != nil {
		return fmt.Errorf("can't set the time of %s: %w", shell.Quote(t.Path), err)
	}
	if d.Old.Mtime != t.Was {
		d.New.Mtime = asIs
	}
	return nil
}

// entry writes one entry and all below it. src and dst are the directories that it is in. to is its path in the
// staging directory, and by its last name in dst.
func (s *stager) entry(src, dst int, n *node, to string, u *unit) error {
	switch n.Type.Type() {
	case fs.ModeDir:
		return s.directory(src, dst, n, to, u)
	case 0:
		return s.regular(src, dst, n, to)
	case fs.ModeSymlink, fs.ModeNamedPipe:
		return s.special(src, dst, n, path.Base(to))
	}
	return refusal("a file of this kind can't be applied")
}

// directory writes a directory and all in it.
func (s *stager) directory(src, dst int, n *node, to string, u *unit) error {
	step("mkdir")
	err := unix.Mkdirat(dst, path.Base(to), 0o700)
	if err != nil {
		return err
	}
	in, err := safepath.OpenAt(src, path.Base(n.Path), anyDir)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	out, err := safepath.OpenAt(dst, path.Base(to), anyDir)
	if err != nil {
		return err
	}
	defer unix.Close(out)
	for _, b := range n.left {
		u.Left = append(u.Left, []byte(b.Path))
	}
	for _, b := range n.below {
		name := path.Base(b.Path)
		err := s.entry(in, out, b, path.Join(to, name), u)
		if err == nil {
			u.Count++
		} else {
			u.Left = append(u.Left, []byte(b.Path))
		}
		err = s.wrote(b, out, name, err)
		if err != nil {
			return err
		}
	}
	var want unix.Stat_t
	err = unix.Fstat(in, &want)
	if err != nil {
		return err
	}
	attrs, err := attributesOf(in)
	if err == nil && to == u.name() && want.Mode&dirPerm != dirPerm {
		err = s.closeLater(n, out, &want)
	}
	if err != nil {
		return err
	}
	return complete(out, &want, attrs)
}

// closeLater leaves a new directory open that is to be closed to its owner, since only then it can be renamed.
func (s *stager) closeLater(n *node, out int, want *unix.Stat_t) error {
	_, ino, err := lookAt(out)
	s.r.Dirs = append(s.r.Dirs, &dir{Tree: n.Tree, Path: []byte(n.Path), Ino: ino, New: lookOf(want)})
	want.Mode |= dirPerm
	return err
}

// projectFile is the policy of a project. With another name of it, even in a layer, the next session would not start.
const projectFile = ".zsbx.toml"

// regular writes a regular file, or another name of one.
func (s *stager) regular(src, dst int, n *node, to string) error {
	if n.Links == 1 {
		link := !s.trees[n.Tree].inTree && path.Base(n.Path) != projectFile
		return file(src, dst, n, path.Base(to), link)
	}
	first := s.links[inode{n.Tree, n.Inode}]
	if first == "" {
		err := file(src, dst, n, path.Base(to), false)
		if err == nil {
			s.links[inode{n.Tree, n.Inode}] = to
		}
		return err
	}
	dir, err := safepath.OpenAt(s.trees[n.Tree].stage, path.Dir(first), anyDir)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	step("link")
	return unix.Linkat(dir, path.Base(first), dst, path.Base(to), 0)
}
