package layer

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
)

const (
	maxChanges = 1_000_000
	maxNames   = 512 << 20 // bytes of the paths of all changes
	maxDepth   = 256       // directories in each other; each takes descriptors
	maxSums    = 512 << 20 // bytes that Freeze reads, so that a file of which only times change is no conflict
)

var errTooMany = fmt.Errorf("it has more than %d changes, or too long paths: it can only be thrown away", maxChanges)

// reader finds the changes of a layer.
type reader struct {
	layer *Layer
	uid   int
	gids  []int
	most  int   // changes
	sums  int64 // bytes that may still be read
	names int   // bytes of all paths so far
	seen

	tree    int
	began   int64
	gone    bool // the tree is not there
	renames bool // the command removed a file of the tree, so that it may have renamed one
}

// place is a directory that is being read.
type place struct {
	upper, lower *os.File // nil if there is none
	path         string
	opaque       bool // what the lower one has was removed, and all that is in it
	late         bool // the lower one may not be what the command saw, nor what is in it
	depth        int
}

// read returns what there is to note about a layer. At most sums bytes of files are read.
func (l *Layer) read(sums int64) (*seen, error) {
	gids, err := os.Getgroups()
	if err != nil {
		return nil, err
	}
	r := &reader{layer: l, uid: os.Geteuid(), gids: append(gids, os.Getegid()), most: maxChanges, sums: sums}
	return &r.seen, r.trees()
}

func (r *reader) trees() error {
	for n := range r.layer.Trees {
		first := len(r.Changes)
		if err := r.readTree(n); err != nil {
			return fmt.Errorf("layer %s: %w", r.layer.Session, err)
		}
		r.Gone = append(r.Gone, r.gone)
		for i := range r.Changes[first:] {
			c := &r.Changes[first+i]
			c.Lost = c.Lost && (c.Type.IsDir() || !r.renames)
		}
	}
	return nil
}

func (r *reader) readTree(n int) error {
	var err error
	r.tree = n
	r.renames = false
	r.began, err = r.layer.began(n)
	if err != nil {
		return err
	}
	upper, err := r.layer.OpenUpper(n)
	if err != nil {
		return err
	}
	defer upper.Close()
	lower, err := r.layer.OpenTree(n)
	r.gone = isGone(err)
	if err != nil && !r.gone {
		return err
	}
	top := place{upper: upper, lower: lower, path: "."}
	if !r.gone {
		defer lower.Close()
		if err := r.top(top); err != nil {
			return err
		}
	}
	return r.dir(top)
}

// isGone reports whether an error says that something is not there, and not that it is closed.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrGone) || errors.Is(err, unix.ENOTDIR) ||
		errors.Is(err, unix.ELOOP)
}

// top compares a tree itself. Only root can give the layer the owner of another user's tree.
func (r *reader) top(p place) error {
	up, err := look(p.upper, ".")
	if err != nil {
		return err
	}
	low, err := look(p.lower, ".")
	if err != nil {
		return err
	}
	if r.uid != 0 {
		up.st.Uid = low.st.Uid
		up.st.Gid = low.st.Gid
	}
	attrs, err := up.attributes()
	if err != nil {
		return err
	}
	p.late = r.exchanged(nil, low)
	return r.compare(p, up, low, attrs, nil)
}

// dir reads a directory.
func (r *reader) dir(p place) error {
	names, err := list(p.upper, r.most)
	if err != nil {
		return err
	}
	if p.opaque {
		hidden, err := list(p.lower, r.most)
		if err != nil {
			return err
		}
		names = append(names, hidden...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := r.entry(p, name); err != nil {
			return err
		}
	}
	return nil
}

// list returns the names in a directory, none if it is nil. More than can be changes are an error.
func list(dir *os.File, most int) ([]string, error) {
	if dir == nil {
		return nil, nil
	}
	names, err := dir.Readdirnames(most + 1)
	if err == io.EOF {
		err = nil
	}
	if err == nil && len(names) > most {
		err = errTooMany
	}
	return names, err
}

// entry compares what the layer and the tree have by one name, and what is in it.
func (r *reader) entry(p place, name string) error {
	up, err := look(p.upper, name)
	if err != nil {
		return err
	}
	low, err := look(p.lower, name)
	if err != nil {
		return err
	}
	next := place{path: path.Join(p.path, name), depth: p.depth + 1}
	if up == nil || up.whiteout() {
		return r.removed(p, next, low)
	}
	attrs, err := up.attributes()
	if err != nil {
		return err
	}
	next.opaque = p.opaque || attrs.opaque || !up.isDir()
	next.late = p.late || r.late(p.lower, low, attrs, next.opaque)
	var unread error
	closed := up.isDir() && r.closed(up) != ""
	if !closed {
		unread = next.open(up, low)
		defer next.close()
	}
	if err := r.compare(next, up, low, attrs, unread); err != nil {
		return err
	}
	if low == nil && attrs.origin {
		r.Changes[len(r.Changes)-1].Lost = r.lost(p, up)
	}
	if closed || unread != nil {
		return nil
	}
	return r.dir(next)
}

// removed adds the changes for what the layer removes, and for what is in it. low is nil if the tree has nothing
// there.
func (r *reader) removed(p, next place, low *entry) error {
	c := Change{Path: next.path, Op: Remove}
	if low == nil {
		if r.gone {
			return r.add(c, nil, false)
		}
		return nil
	}
	c.Type = low.mode
	c.Size = low.st.Size
	next.opaque = true
	next.late = p.late || r.changedSince(low)
	r.renames = r.renames || low.mode.IsRegular()
	unread := next.open(nil, low)
	defer next.close()
	c.Refused = notLookedAt(unread)
	if err := r.add(c, low, next.late); err != nil || unread != nil {
		return err
	}
	return r.dir(next)
}

// open opens those of two entries that are directories. The error says why what is in them can't be looked at.
func (p *place) open(up, low *entry) (err error) {
	if p.depth > maxDepth && (up.isDir() || low.isDir()) {
		return fmt.Errorf("more than %d directories are in each other", maxDepth)
	}
	if low.isDir() {
		p.lower, err = low.list()
	}
	if up.isDir() && err == nil {
		p.upper, err = up.list()
	}
	return err
}

func (p *place) close() {
	_ = p.upper.Close() // nil is an error, too
	_ = p.lower.Close()
}

// notLookedAt says why what is in something is not looked at.
func notLookedAt(why error) string {
	if why == nil {
		return ""
	}
	return "what is in it is not looked at: " + files.Plain(why).Error()
}

// late reports whether what a tree has in a directory may not be what the command saw. hidden says that the command
// saw none of it.
func (r *reader) late(dir *os.File, low *entry, a attributes, hidden bool) bool {
	switch {
	case low == nil:
		return false
	case hidden || !low.isDir():
		return r.changedSince(low)
	}
	return !a.origin || r.exchanged(dir, low) // all that is in a directory that came late may be old
}

// exchanged reports whether a directory of a tree may have been moved to where it is in dir after the command began.
// That, as another mode or owner, changes only one of its two times; what is then put into it, or taken away, changes
// both. But to move it there has changed dir, too.
func (r *reader) exchanged(dir *os.File, low *entry) bool {
	if !r.changedSince(low) {
		return false
	}
	if low.st.Ctim != low.st.Mtim {
		return true
	}
	above, err := look(dir, ".")
	return err != nil || above != nil && r.changedSince(above)
}

// lost reports whether a copy of something in a tree is left of which the tree has nothing. A directory of the tree
// can't be renamed in the layer. A file may have been renamed, or have another name: see trees.
func (r *reader) lost(p place, up *entry) bool {
	if up.isDir() {
		return !r.gone
	}
	above, err := look(p.lower, ".")
	return err == nil && above != nil && r.changedSince(above) && up.st.Nlink == 1
}

// changedSince reports whether an entry of a tree changed after the command began. It may have been put there
// then, too.
func (r *reader) changedSince(low *entry) bool { return low.st.Ctim.Nano() >= r.began }

// compare adds the change of something that the layer has, but of a directory not those of what is in it. unread is
// why these are not looked at: that is told even if nothing else changes.
func (r *reader) compare(p place, up, low *entry, a attributes, unread error) error {
	c := Change{
		Path: p.path, Op: Add, Type: up.mode, Size: up.st.Size,
		Inode: up.st.Ino, Links: uint64(up.st.Nlink), Shares: shares(up, low, a),
		Refused: cmp.Or(r.refused(up, low, a), r.closed(up), notLookedAt(unread)),
	}
	if r.uid == 0 && !inherited(up, low) {
		c.Foreign = r.foreign(up, low)
	}
	if low == nil {
		return r.add(c, nil, false)
	}
	c.Op = Modify
	if a.strange == "" && unread == nil && r.closed(up) == "" {
		is, err := same(up, low)
		if err != nil && !isGone(err) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		if is && up.isDir() {
			r.touched(p.path, up, low)
			return nil
		}
		if is && up.st.Nlink < 2 { // the kernel copies one name of a file: the command made the others
			return nil
		}
	}
	return r.add(c, low, p.late)
}

// touched notes that the command gave a directory another time. Without the note, that is lost.
func (r *reader) touched(rel string, up, low *entry) {
	names := r.names + len(rel)
	if up.st.Mtim == low.st.Mtim || r.changedSince(low) || len(r.Touched) == r.most || names > maxNames {
		return
	}
	r.names = names
	r.Touched = append(r.Touched, Touched{r.tree, rel, low.st.Mtim.Nano()})
}

// add adds a change of something in place of which the tree has low, or nil.
func (r *reader) add(c Change, low *entry, late bool) error {
	r.names += len(c.Path)
	if len(r.Changes) == r.most || r.names > maxNames {
		return errTooMany
	}
	c.Tree = r.tree
	if low != nil {
		c.Was = low.state()
		c.Was.Late = late
		if summed := low.mode.IsRegular() || low.mode&fs.ModeSymlink != 0; summed && low.st.Size <= r.sums {
			r.sums -= low.st.Size
			c.Was.Sum, _ = low.sum() // without one, the times decide
		}
	}
	r.Changes = append(r.Changes, c)
	return nil
}

// refused returns why something that the layer has is never made real.
func (r *reader) refused(up, low *entry, a attributes) string {
	set := up.mode & (fs.ModeSetuid | fs.ModeSetgid)
	foreign := r.foreign(up, low)
	for _, reason := range []struct {
		is  bool
		why string
	}{
		{up.mode&fs.ModeDevice != 0, "a device"},
		{up.mode&fs.ModeSocket != 0, "a socket, and the program that made it has ended"},
		{up.mode.IsRegular() && set&fs.ModeSetuid != 0, "it would run with the rights of its owner (set-user-ID)"},
		{up.mode.IsRegular() && set != 0, "it would run with the rights of its group (set-group-ID)"},
		{a.own[capabilityAttribute] != nil, "it would run with capabilities"},
		{a.strange != "", "it has the attribute " + a.strange + ", which belongs to overlays"},
		{r.uid != 0 && foreign != "", foreign},
	} {
		if reason.is {
			return reason.why
		}
	}
	return ""
}

// foreign returns whether something in the layer has another owner or group than the user and what the tree has there,
// as a reason, or "".
func (r *reader) foreign(up, low *entry) string {
	uid := up.st.Uid
	gid := up.st.Gid
	switch {
	case int(uid) != r.uid && (low == nil || low.st.Uid != uid):
		return "its owner is another user"
	case !slices.Contains(r.gids, int(gid)) && (low == nil || low.st.Gid != gid):
		return "its group is not one of yours"
	}
	return ""
}

// inherited reports whether something new has the owner and group of the directory that it is in. npm, as root, gives
// it these.
func inherited(up, low *entry) bool {
	if low != nil {
		return false
	}
	dir, err := look(up.dir, ".")
	return err == nil && dir != nil && dir.st.Uid == up.st.Uid && dir.st.Gid == up.st.Gid
}

// closed returns why its mode keeps something in the layer from being read, or "". Root can read all.
func (r *reader) closed(up *entry) string {
	need := fs.FileMode(0)
	switch {
	case r.uid == 0:
	case up.isDir():
		need = 0o500
	case up.mode.IsRegular():
		need = 0o400
	}
	if up.mode&need == need {
		return ""
	}
	return fmt.Sprintf("its mode %04o closes it to its owner, so that it can't be read", up.mode.Perm())
}
