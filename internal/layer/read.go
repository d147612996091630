package layer

import (
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

	tree  int
	began int64
	gone  bool // the tree is not there
}

// place is a directory that is being read.
type place struct {
	upper, lower *os.File // lower is nil if there is none
	path         string
	opaque       bool // what the lower one has was removed, and all that is in it
	late         bool // the lower one changed, or something above it, after the command began
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
		if err := r.readTree(n); err != nil {
			return fmt.Errorf("layer %s: %w", r.layer.Session, err)
		}
		r.Gone = append(r.Gone, r.gone)
		r.renamed(n)
	}
	return nil
}

// renamed takes no file of a tree for lost if the command removed one: it may have renamed it.
func (r *reader) renamed(tree int) {
	from := len(r.Changes)
	removed := false
	for from > 0 && r.Changes[from-1].Tree == tree {
		from--
		c := &r.Changes[from]
		removed = removed || c.Op == Remove && c.Type.IsRegular()
	}
	for i := range r.Changes[from:] {
		c := &r.Changes[from+i]
		c.Lost = c.Lost && (c.Type.IsDir() || !removed)
	}
}

func (r *reader) readTree(n int) error {
	var err error
	r.tree = n
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
	if err == nil {
		defer lower.Close()
		if err := r.top(upper, lower); err != nil {
			return err
		}
	}
	return r.dir(place{upper: upper, lower: lower, path: "."})
}

// isGone reports whether an error says that something is not there, and not that it is closed.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrGone) || errors.Is(err, unix.ENOTDIR) ||
		errors.Is(err, unix.ELOOP)
}

// top compares a tree itself. Only root can give the layer the owner of another user's tree.
func (r *reader) top(upper, lower *os.File) error {
	up, err := look(upper, ".")
	if err != nil {
		return err
	}
	low, err := look(lower, ".")
	if err != nil {
		return err
	}
	if r.uid != 0 {
		up.st.Uid = low.st.Uid
		up.st.Gid = low.st.Gid
	}
	attrs, err := attributesOf(upper, ".")
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return r.compare(".", up, low, attrs, r.moved(low))
}

// dir reads a directory of the layer.
func (r *reader) dir(p place) error {
	names, err := list(p.upper, r.most)
	if err != nil {
		return err
	}
	if p.opaque && p.lower != nil {
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

// list returns the names in a directory, unless there are more than can be changes.
func list(dir *os.File, most int) ([]string, error) {
	names, err := dir.Readdirnames(most + 1)
	if err == io.EOF {
		err = nil
	}
	if err == nil && len(names) > most {
		err = errTooMany
	}
	return names, err
}

// entry compares what the layer and the tree have by one name.
func (r *reader) entry(p place, name string) error {
	up, err := look(p.upper, name)
	if err != nil {
		return err
	}
	low, err := look(p.lower, name)
	if err != nil {
		return err
	}
	rel := path.Join(p.path, name)
	if up == nil || up.whiteout() {
		return r.removed(rel, low, p.late, p.depth)
	}
	attrs, err := attributesOf(p.upper, name)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	opaque := p.opaque || attrs.opaque
	late := p.late || r.late(p.lower, up, low, attrs, opaque)
	if err := r.compare(rel, up, low, attrs, late); err != nil {
		return err
	}
	if low == nil && attrs.origin {
		r.Changes[len(r.Changes)-1].Lost = r.lost(p, up)
	}
	if !up.isDir() {
		return r.emptied(rel, low, late, p.depth)
	}
	if r.closed(up) != "" {
		return nil
	}
	if p.depth == maxDepth {
		return r.refuse(rel, up, low, errTooDeep)
	}
	next := place{path: rel, opaque: opaque, late: late, depth: p.depth + 1}
	next.upper, err = up.list()
	if err != nil {
		return err
	}
	defer next.upper.Close()
	if low.isDir() {
		next.lower, err = low.list()
		if err != nil {
			return r.refuse(rel, up, low, err)
		}
		defer next.lower.Close()
	}
	return r.dir(next)
}

// late reports whether what a tree has may not be what the command saw. If the command made or emptied its own
// directory, all that is in the tree's may be new, however old it is; and so it may if that was moved there.
func (r *reader) late(dir *os.File, up, low *entry, a attributes, opaque bool) bool {
	if low == nil {
		return false
	}
	if up.isDir() && low.isDir() && !opaque {
		return !a.origin || r.moved(low) || r.mayBeMoved(dir, low)
	}
	return r.changedSince(low)
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

// moved reports whether a directory of a tree was moved there after the command began, or its mode or owner
// changed. What is put into it, or taken away, is judged by itself: that gives the directory two equal times.
func (r *reader) moved(low *entry) bool {
	return r.changedSince(low) && low.st.Ctim != low.st.Mtim
}

// mayBeMoved reports whether a directory may have been moved to where it is in dir, and then something was put into
// it: that gives it two equal times, too. Moving it there has changed dir.
func (r *reader) mayBeMoved(dir *os.File, low *entry) bool {
	if !r.changedSince(low) {
		return false
	}
	above, err := look(dir, ".")
	return err != nil || above == nil || r.changedSince(above)
}

// changedSince reports whether an entry of a tree changed after the command began. It may have been put there
// then, too.
func (r *reader) changedSince(low *entry) bool { return low.st.Ctim.Nano() >= r.began }

// compare adds the change of something that the layer has, but of a directory not those of what is in it.
func (r *reader) compare(rel string, up, low *entry, a attributes, late bool) error {
	c := Change{
		Path: rel, Op: Add, Type: up.mode, Size: up.st.Size,
		Inode: up.st.Ino, Links: uint64(up.st.Nlink),
		Refused: r.refused(up, low, a),
	}
	if low == nil {
		return r.add(c, nil, false)
	}
	c.Op = Modify
	if a.strange == "" && r.closed(up) == "" {
		is, err := same(up, low)
		if err != nil && !isGone(err) && !errors.Is(err, fs.ErrPermission) {
			return err
		}
		if is && up.isDir() {
			r.touched(rel, up, low)
			return nil
		}
		if is && up.st.Nlink < 2 { // the kernel copies one name of a file: the command made the others
			return nil
		}
	}
	return r.add(c, low, late)
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

// removed adds the changes for what the layer removes. low is nil if the tree has nothing there.
func (r *reader) removed(rel string, low *entry, late bool, depth int) error {
	c := Change{Path: rel, Op: Remove}
	if low == nil {
		if r.gone {
			return r.add(c, nil, false)
		}
		return nil
	}
	late = late || r.changedSince(low)
	c.Type = low.mode
	c.Size = low.st.Size
	if err := r.add(c, low, late); err != nil {
		return err
	}
	return r.emptied(rel, low, late, depth)
}

// emptied adds the changes for what is in a directory of the tree in place of which the layer has none.
func (r *reader) emptied(rel string, low *entry, late bool, depth int) error {
	if !low.isDir() {
		return nil
	}
	if depth == maxDepth {
		return r.refuse(rel, nil, low, errTooDeep)
	}
	dir, err := low.list()
	if err != nil {
		return r.refuse(rel, nil, low, err)
	}
	defer dir.Close()
	names, err := list(dir, r.most)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		e, err := look(dir, name)
		if err == nil {
			err = r.removed(path.Join(rel, name), e, late, depth+1)
		}
		if err != nil {
			return err
		}
	}
	return nil
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

var errTooDeep = fmt.Errorf("more than %d directories are in each other", maxDepth)

// refuse says why what is in a directory is not looked at. That is told even if nothing else of it changes.
func (r *reader) refuse(rel string, up, low *entry, err error) error {
	last := len(r.Changes) - 1
	if last < 0 || r.Changes[last].Tree != r.tree || r.Changes[last].Path != rel {
		c := Change{Path: rel, Op: Modify, Type: up.mode, Inode: up.st.Ino, Links: uint64(up.st.Nlink)}
		if err := r.add(c, low, false); err != nil {
			return err
		}
		last++
	}
	if r.Changes[last].Refused == "" {
		r.Changes[last].Refused = "what is in it is not looked at: " + files.Plain(err).Error()
	}
	return nil
}

// refused returns why something that the layer has is never made real.
func (r *reader) refused(up, low *entry, a attributes) string {
	set := up.mode & (fs.ModeSetuid | fs.ModeSetgid)
	uid := up.st.Uid
	gid := up.st.Gid
	foreign := int(uid) != r.uid && (low == nil || low.st.Uid != uid)
	foreignGroup := !slices.Contains(r.gids, int(gid)) && (low == nil || low.st.Gid != gid)
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
		{r.uid != 0 && foreign, "its owner is another user"},
		{r.uid != 0 && foreignGroup, "its group is not one of yours"},
	} {
		if reason.is {
			return reason.why
		}
	}
	return r.closed(up)
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
