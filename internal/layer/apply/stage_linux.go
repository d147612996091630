package apply

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/safepath"
)

// refusal is why one change is not made. It is not the end of the others.
type refusal string

func (r refusal) Error() string { return string(r) }

const notAsSeen = refusal("the layer has something else there by now")

// stager writes what is new into the staging directories.
type stager struct {
	*work

	r     *round
	p     *plan
	slots chan struct{} // each is one more processor that may help

	mu    sync.Mutex
	links map[inode]*linked
	dirs  map[at]*dir
	err   error // the first that ends all
}

type inode struct {
	tree int
	ino  uint64
}

// linked is a file of the layer that has more than one name.
type linked struct {
	ready chan struct{} // closed once it was written
	at    string        // in the staging directory; "" if it was refused
}

// stage writes all that is new. Then the round has what is to be renamed.
func (w *work) stage(r *round, p *plan) error {
	s := &stager{work: w, r: r, p: p, links: map[inode]*linked{}, dirs: map[at]*dir{}}
	s.slots = make(chan struct{}, max(runtime.GOMAXPROCS(0), 2)-1)
	for _, d := range r.Dirs {
		s.dirs[at{d.Tree, "."}] = d
	}
	units := make([]*unit, len(p.units))
	s.each(len(p.units), func(i int) {
		n := p.units[i]
		u, err := s.unit(i, n)
		if s.failed(n, err) {
			s.forget(s.trees[n.Tree].stage, strconv.Itoa(i))
			return
		}
		units[i] = u
	})
	for _, n := range p.dirs {
		s.failed(n, s.change(n))
	}
	for _, d := range r.Dirs {
		if d.New != nil && p.stay[at{d.Tree, string(d.Path)}] {
			d.New.Mtime = asIs
		}
	}
	for _, u := range units {
		if u != nil && u.Op != "" {
			r.Units = append(r.Units, u)
		}
	}
	return s.err
}

// each calls f for each number below n, by more than one processor if some are free.
func (s *stager) each(n int, f func(i int)) {
	const share = 16
	var wait sync.WaitGroup
	for from := 0; from < n; from += share {
		some := func() {
			for i := from; i < min(from+share, n) && !s.ended(); i++ {
				f(i)
			}
		}
		select {
		case s.slots <- struct{}{}:
			wait.Go(func() {
				some()
				<-s.slots
			})
		default:
			some()
		}
	}
	wait.Wait()
}

func (s *stager) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// failed notes why a change is not made, and reports whether there is such an error.
func (s *stager) failed(n *node, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	why, refused := errors.AsType[refusal](err)
	against, conflict := errors.AsType[changed](err)
	if err == nil {
		s.advance(1)
		return false
	}
	c := *n.Change
	switch {
	case refused:
		c.Refused = string(why)
		s.res.Refused = append(s.res.Refused, c)
	case conflict:
		c.Conflict = string(against)
		s.res.Conflicts = append(s.res.Conflicts, c)
	case s.err == nil:
		s.err = fmt.Errorf("can't write %s: %w", c.Path, err)
	}
	if refused || conflict {
		s.p.stay[place(n.Change).above()] = true
	}
	return true
}

// forget removes what was staged of a change that is not made.
func (s *stager) forget(dir int, name string) {
	if s.ended() { // all of it is removed
		return
	}
	err := removeAll(dir, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// counted notes that one more change belongs to a unit.
func (s *stager) counted(u *unit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.Count++
}

// unit compares what is in a tree with what the layer saw, and writes what is to be there.
func (s *stager) unit(i int, n *node) (*unit, error) {
	t := s.trees[n.Tree]
	dst, base, err := above(t.root, n.Path)
	if err != nil {
		return nil, conflictOf(err)
	}
	defer unix.Close(dst)
	u := &unit{N: i, Tree: n.Tree, Path: []byte(n.Path), Op: n.Op, Type: n.Type, Count: 1}
	err = s.before(n, u, dst, base)
	if err != nil || u.Op == "" {
		return u, err
	}
	err = s.touch(at{n.Tree, path.Dir(n.Path)})
	if goes(n.Change) {
		u.Count = n.count
		s.advance(n.count - 1)
	}
	if err != nil || u.Op == layer.Remove {
		return u, err
	}
	src, _, err := above(t.upper, n.Path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(src)
	d, st, err := s.entry(src, t.stage, n, strconv.Itoa(i), ".", u)
	u.New = d.mark(&st)
	return u, err
}

// before notes what is there. It is a conflict if it is not what the layer saw, unless that was decided.
func (s *stager) before(n *node, u *unit, in int, base string) error {
	st, err := lstat(in, base)
	if err == nil && st.Dev != s.trees[n.Tree].dev {
		return refusal("it is on another file system than " + s.l.Trees[n.Tree].Path)
	}
	forced := s.p.forced[place(n.Change)]
	switch {
	case err == unix.ENOENT && n.Op == layer.Add:
		return nil
	case err == unix.ENOENT && forced:
		u.Op = layer.Add
		if n.Op == layer.Remove {
			u.Op = ""
		}
		return nil
	case err != nil:
		return conflictOf(err)
	}
	if n.Op == layer.Add && !forced {
		return conflictOf(unix.EEXIST)
	}
	if n.Op == layer.Add {
		u.Op = layer.Modify
	}
	seen := make(map[string]*layer.State)
	n.seen(n.Path, seen)
	var sum digest
	err = walk(in, base, ".", func(rel string, in int, name string, now *unix.Stat_t) error {
		sum.add(rel, now)
		was, is := seen[rel]
		switch {
		case now.Dev != st.Dev:
			return unix.EXDEV
		case forced || is && unchanged(in, name, now, was):
			return nil
		}
		return changed("it has changed")
	})
	if err != nil {
		return conflictOf(err)
	}
	u.Old = sum.mark(&st)
	if isDir(&st) && st.Mode&dirPerm != dirPerm { // it can only be moved once that is changed
		s.mu.Lock()
		defer s.mu.Unlock()
		s.r.Dirs = append(s.r.Dirs, &dir{Tree: n.Tree, Path: u.Path, Ino: st.Ino, Old: lookOf(&st)})
	}
	return nil
}

// seen collects what the layer saw at a node and below it, by paths relative to top.
func (n *node) seen(top string, all map[string]*layer.State) {
	rel := "."
	if n.Path != top {
		rel = n.Path[len(top)+1:]
	}
	all[rel] = n.Was
	for _, b := range n.below {
		b.seen(top, all)
	}
}

// touch notes how a directory looks in which something is renamed, and how it is to look then: as in the layer
// if all that it has there is made real.
func (s *stager) touch(p at) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.note(p)
	return err
}

func (s *stager) note(p at) (*dir, error) {
	if d := s.dirs[p]; d != nil && d.New != nil {
		return d, nil
	}
	t := s.trees[p.tree]
	fd, err := safepath.OpenAt(t.root, p.path, anyDir)
	if err != nil {
		return nil, conflictOf(err)
	}
	defer unix.Close(fd)
	old, ino, err := lookAt(fd)
	if err != nil {
		return nil, err
	}
	new := &look{Mtime: asIs}
	upper, err := safepath.OpenAt(t.upper, p.path, anyDir)
	if err == nil {
		defer unix.Close(upper)
		new, _, err = lookAt(upper)
	}
	if err != nil && err != unix.ENOTDIR { // what is removed has none in the layer
		return nil, err
	}
	new.Mode = old.Mode
	d := s.dirs[p]
	if d == nil {
		d = &dir{Tree: p.tree, Path: []byte(p.path), Ino: ino, Old: old}
		s.dirs[p] = d
		s.r.Dirs = append(s.r.Dirs, d)
	}
	d.New = new
	return d, nil
}

// change notes that a directory gets another mode or other attributes.
func (s *stager) change(n *node) error {
	t := s.trees[n.Tree]
	fd, err := safepath.OpenAt(t.root, n.Path, anyDir)
	if err != nil {
		return conflictOf(err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && !s.p.forced[place(n.Change)] && !unchanged(fd, ".", &st, n.Was) {
		err = changed("it has changed")
	}
	if err != nil {
		return err
	}
	upper, err := safepath.OpenAt(t.upper, n.Path, anyDir)
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
	d.Old.Attrs, _, err = attributes(magic(fd))
	if err == nil {
		d.New.Attrs, _, err = attributes(magic(upper))
	}
	return err
}

// entry writes one entry and all below it. src and dst are the directories that it is in.
func (s *stager) entry(src, dst int, n *node, to, rel string, u *unit) (d digest, st unix.Stat_t, err error) {
	from := path.Base(n.Path)
	if n.Type.IsDir() {
		return s.directory(src, dst, n, to, rel, u)
	}
	switch n.Type.Type() {
	case 0:
		st, err = s.names(src, dst, n, to, path.Join(strconv.Itoa(u.N), rel))
	case fs.ModeSymlink:
		err = symlink(src, dst, from, to)
	case fs.ModeNamedPipe:
		err = pipe(src, dst, from, to)
	default:
		err = refusal("a file of this kind can't be applied")
	}
	if err == nil && st.Ino == 0 {
		st, err = lstat(dst, to)
	}
	if err == nil && files.Mode(st.Mode).Type() != n.Type.Type() {
		err = changed("something else appeared in the staging directory")
	}
	d.add(rel, &st)
	return d, st, err
}

// directory writes a directory and all in it.
func (s *stager) directory(src, dst int, n *node, to, rel string, u *unit) (d digest, st unix.Stat_t, err error) {
	step("mkdir")
	err = unix.Mkdirat(dst, to, 0o700)
	if err != nil {
		return d, st, err
	}
	in, err := safepath.OpenAt(src, path.Base(n.Path), anyDir)
	if err != nil {
		return d, st, err
	}
	defer unix.Close(in)
	out, err := safepath.OpenAt(dst, to, anyDir)
	if err != nil {
		return d, st, err
	}
	defer unix.Close(out)
	var mu sync.Mutex
	s.each(len(n.below), func(i int) {
		b := n.below[i]
		name := path.Base(b.Path)
		sum, _, err := s.entry(in, out, b, name, path.Join(rel, name), u)
		if s.failed(b, err) {
			s.forget(out, name)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		d.join(sum)
		s.counted(u)
	})
	var want unix.Stat_t
	err = unix.Fstat(in, &want)
	if err != nil {
		return d, st, err
	}
	attrs, _, err := attributes(magic(in))
	if err == nil {
		err = setAttributes(magic(out), attrs)
	}
	if err == nil {
		err = s.finishDir(out, &want, &st, n, rel)
	}
	d.add(rel, &st)
	return d, st, err
}

// finishDir sets mode, owner and times. A closed one that is yet to be renamed is closed in the end.
func (s *stager) finishDir(out int, want, st *unix.Stat_t, n *node, rel string) error {
	look := lookOf(want)
	if rel == "." && want.Mode&dirPerm != dirPerm {
		want.Mode |= dirPerm
	}
	err := unix.UtimesNanoAt(out, "", []unix.Timespec{want.Atim, want.Mtim}, unix.AT_EMPTY_PATH)
	if err == nil {
		err = own(out, want, st)
	}
	if rel == "." && look.Mode&dirPerm != dirPerm {
		s.mu.Lock()
		s.r.Dirs = append(s.r.Dirs, &dir{Tree: n.Tree, Path: []byte(n.Path), Ino: st.Ino, New: look})
		s.mu.Unlock()
	}
	return err
}

// names writes a regular file, or another name of one.
func (s *stager) names(src, dst int, n *node, to, at string) (st unix.Stat_t, err error) {
	from := path.Base(n.Path)
	if n.Links < 2 {
		return file(src, dst, n, from, to)
	}
	s.mu.Lock()
	l := s.links[inode{n.Tree, n.Inode}]
	first := l == nil
	if first {
		l = &linked{ready: make(chan struct{})}
		s.links[inode{n.Tree, n.Inode}] = l
	}
	s.mu.Unlock()
	if first {
		defer close(l.ready)
		st, err = file(src, dst, n, from, to)
		if err == nil {
			l.at = at
		}
		return st, err
	}
	<-l.ready
	if l.at == "" {
		return st, refusal("another name of the file was not applied")
	}
	st, err = lstat(src, from)
	if err == nil && st.Ino != n.Inode {
		err = notAsSeen
	}
	if err != nil {
		return st, err
	}
	dir, name, err := above(s.trees[n.Tree].stage, l.at)
	if err != nil {
		return st, err
	}
	defer unix.Close(dir)
	step("link")
	err = unix.Linkat(dir, name, dst, to, 0)
	if err != nil {
		return st, err
	}
	return lstat(dst, to)
}

// file copies a regular file, and says how the new one looks.
func file(src, dst int, n *node, from, to string) (have unix.Stat_t, err error) {
	in, err := unix.Openat(src, from, readFile, 0)
	if err == unix.EACCES {
		return have, refusal("it can't be read: its mode is " + n.Type.Perm().String())
	}
	if err != nil {
		return have, err
	}
	defer unix.Close(in)
	var want unix.Stat_t
	err = unix.Fstat(in, &want)
	if err != nil {
		return have, err
	}
	if want.Mode&unix.S_IFMT != unix.S_IFREG || want.Size != n.Size || want.Mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		return have, notAsSeen
	}
	step("create")
	out, err := unix.Openat(dst, to, newFile, want.Mode&0o777)
	if err != nil {
		return have, err
	}
	defer unix.Close(out)
	step("copy")
	err = copyData(in, out, &want)
	if err == nil {
		err = copyAttributes(in, out)
	}
	if err == nil {
		step("set times")
		err = unix.UtimesNanoAt(out, "", []unix.Timespec{want.Atim, want.Mtim}, unix.AT_EMPTY_PATH)
	}
	if err == nil {
		err = own(out, &want, &have)
	}
	return have, err
}

// copyAttributes copies the attributes of a regular file to a new one, which has none.
func copyAttributes(in, out int) error {
	n, err := unix.Flistxattr(in, nil)
	if n == 0 || err == unix.ENOTSUP {
		return nil
	}
	attrs, others, err := attributes(magic(in))
	if err != nil {
		return err
	}
	if others != nil {
		return refusal("it has the attribute " + others[0])
	}
	if len(attrs) == 0 {
		return nil
	}
	step("set attributes")
	err = setAttributes(magic(out), attrs)
	if err == unix.ENOTSUP {
		return refusal("it has attributes, and the file system there can't")
	}
	return err
}

// own gives a new file or directory its owner and mode, and says how it looks.
func own(fd int, want, have *unix.Stat_t) error {
	err := unix.Fstat(fd, have)
	if err != nil {
		return err
	}
	owner := have.Uid == want.Uid && have.Gid == want.Gid
	if owner && have.Mode&0o7777 == want.Mode&0o7777 {
		return nil
	}
	if !owner {
		step("chown")
		err = unix.Fchownat(fd, "", int(want.Uid), int(want.Gid), unix.AT_EMPTY_PATH)
		if err == unix.EPERM {
			err = refusal("it belongs to another user or group")
		}
	}
	if err == nil && want.Mode&unix.S_IFMT != unix.S_IFLNK {
		step("chmod")
		err = unix.Chmod(magic(fd), want.Mode&0o7777)
	}
	if err != nil {
		return err
	}
	return unix.Fstat(fd, have)
}

// small is the size up to which a file is read at once.
const small = 64 << 10

var buffers = sync.Pool{New: func() any { return new([small]byte) }}

// copyData copies what a file has between its holes.
func copyData(in, out int, st *unix.Stat_t) error {
	if st.Size == 0 {
		return nil
	}
	if st.Size <= small && st.Blocks*512 >= st.Size {
		return copyPlain(in, out, 0, st.Size)
	}
	err := unix.Ftruncate(out, st.Size)
	if err != nil {
		return err
	}
	for at := int64(0); at < st.Size; {
		from, err := unix.Seek(in, at, unix.SEEK_DATA)
		if err == unix.ENXIO {
			return nil
		}
		if err != nil {
			return err
		}
		at, err = unix.Seek(in, from, unix.SEEK_HOLE)
		if err == nil {
			err = copyRange(in, out, from, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyRange lets the kernel copy, which on some file systems takes no space.
func copyRange(in, out int, from, to int64) error {
	for from < to {
		src := from
		dst := from
		n, err := unix.CopyFileRange(in, &src, out, &dst, int(min(to-from, 1<<30)), 0)
		if err == unix.EINTR {
			continue
		}
		if err == unix.ENOSPC || err == unix.EDQUOT || err == unix.EIO {
			return err
		}
		if err != nil || n == 0 {
			return copyPlain(in, out, from, to)
		}
		from += int64(n)
	}
	return nil
}

func copyPlain(in, out int, from, to int64) error {
	buf := buffers.Get().(*[small]byte)
	defer buffers.Put(buf)
	for from < to {
		n, err := unix.Pread(in, buf[:min(to-from, small)], from)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		for w := 0; err == nil && w < n; {
			var m int
			m, err = unix.Pwrite(out, buf[w:n], from+int64(w))
			w += max(m, 0)
			if err == unix.EINTR {
				err = nil
			}
		}
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

func symlink(src, dst int, from, to string) error {
	st, err := lstat(src, from)
	if err != nil {
		return err
	}
	target, err := readlink(src, from)
	if err != nil {
		return err
	}
	step("symlink")
	err = unix.Symlinkat(target, dst, to)
	if err != nil {
		return err
	}
	return ownNamed(dst, to, &st, unix.S_IFLNK)
}

func pipe(src, dst int, from, to string) error {
	st, err := lstat(src, from)
	if err != nil {
		return err
	}
	step("mkfifo")
	err = unix.Mknodat(dst, to, unix.S_IFIFO|0o600, 0)
	if err != nil {
		return err
	}
	return ownNamed(dst, to, &st, unix.S_IFIFO)
}

// ownNamed sets owner, mode and times of a new link or FIFO, which can't be open for writing.
func ownNamed(dir int, name string, want *unix.Stat_t, kind uint32) error {
	fd, err := unix.Openat(dir, name, anyFile, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var have unix.Stat_t
	err = unix.Fstat(fd, &have)
	if err != nil {
		return err
	}
	if have.Mode&unix.S_IFMT != kind || want.Mode&unix.S_IFMT != kind {
		return notAsSeen
	}
	err = own(fd, want, &have)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(fd, "", []unix.Timespec{want.Atim, want.Mtim}, unix.AT_EMPTY_PATH)
}
