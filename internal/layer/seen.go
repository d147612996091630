package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/safepath"
)

const maxSeen = 4 << 30 // bytes; maxChanges take less

// The conflicts. Something changed outside after the command began.
const (
	conflictGone    = "the tree has gone, or there is another one in its place"
	conflictWasGone = "the tree was not there when the command had ended"
	conflictLost    = "it was removed outside while the command ran"
	conflictLate    = "it changed outside while the command ran, or a directory above it did"
	conflictChanged = "it has changed outside since"
	conflictRemoved = "it has been removed outside since"
	conflictMade    = "it has been made outside since"
	conflictAbove   = "the directory that it was in has gone"
	conflictClosed  = "what the tree has there can't be looked at: "
	conflictNew     = "something has been put into it outside since"
)

// Freeze notes the changes, and what the trees have in these places. It may be called once nothing is left of
// the session. What others change there after that is a conflict. A second Freeze does nothing, nor one of a layer
// without changes. A damaged layer can't be frozen, nor one with too many changes.
func (l *Layer) Freeze() error {
	if l.Damage != nil || l.Frozen() {
		return l.Damage
	}
	s, err := l.read(maxSums)
	if err != nil || len(s.Changes) == 0 {
		return err
	}
	s.Version = recordVersion
	s.changeTexts(quoted)
	err = l.save(seenFile, s, os.Link)
	if errors.Is(err, fs.ErrExist) {
		return nil // by another process meanwhile
	}
	return err
}

// Decline notes that changes are not to be made, as somebody has decided. Changes does not return them any more.
func (l *Layer) Decline(changes []Change) error {
	s, err := l.seen()
	if err != nil {
		return err
	}
	type spot struct {
		tree int
		path string
	}
	declined := make(map[spot]bool)
	for i := range changes {
		declined[spot{changes[i].Tree, changes[i].Path}] = true
	}
	for i := range s.Changes {
		c := &s.Changes[i]
		c.Declined = c.Declined || declined[spot{c.Tree, c.Path}]
	}
	s.changeTexts(quoted)
	return l.Save(seenFile, s)
}

// Frozen reports whether the layer was frozen.
func (l *Layer) Frozen() bool {
	_, err := os.Lstat(filepath.Join(l.Dir, seenFile))
	return err == nil
}

// Changes returns all changes that may be made, sorted by trees and names, a directory before what is in it. What
// the trees have by now is left out, as after a part was applied. Before Freeze it returns what can be seen so far.
func (l *Layer) Changes() ([]Change, error) {
	all, _, err := l.Everything()
	return slices.DeleteFunc(all, func(c Change) bool { return c.Declined }), err
}

// Everything is Changes, with those that were declined, and the directories that were touched besides.
func (l *Layer) Everything() ([]Change, []Touched, error) {
	s, err := l.seen()
	if errors.Is(err, fs.ErrNotExist) {
		return l.current()
	}
	if err != nil {
		return nil, nil, err
	}
	return l.settle(s.Changes, s.Gone), s.Touched, nil
}

// seen returns what Freeze noted. It is fs.ErrNotExist before that.
func (l *Layer) seen() (*seen, error) {
	b, err := files.Read(filepath.Join(l.Dir, seenFile), maxSeen)
	var s *seen
	if err == nil {
		s, err = readSeen(b)
	}
	if err == nil && (s.Version != recordVersion || len(s.Gone) != len(l.Trees)) {
		err = errors.New("it is not about this layer, or another version of zsbx wrote it")
	}
	if err != nil {
		return nil, fmt.Errorf("layer %s: what was noted at its end: %w", l.Session, err)
	}
	return s, nil
}

// current returns the changes of a layer that was not frozen.
func (l *Layer) current() ([]Change, []Touched, error) {
	s, err := l.read(0)
	if err != nil {
		return nil, nil, err
	}
	for i := range s.Changes {
		c := &s.Changes[i]
		switch {
		case s.Gone[c.Tree]:
			c.Conflict = conflictGone
		case c.Was != nil && c.Was.Late:
			c.Conflict = conflictLate
		case c.Lost:
			c.Conflict = conflictLost
		}
	}
	return s.Changes, s.Touched, nil
}

// settler compares what was noted with what the trees have now.
type settler struct {
	dirs         map[string]bool // the directories that changes make
	gone         map[string]bool // what changes remove
	upper, lower finder
}

// settle leaves out the changes that are real by now, and finds the conflicts of the others.
func (l *Layer) settle(all []Change, wasGone []bool) (out []Change) {
	for n := range l.Trees {
		end := 0
		for end < len(all) && all[end].Tree == n {
			end++
		}
		out = append(out, l.settleTree(n, all[:end], wasGone[n])...)
		all = all[end:]
	}
	return out
}

// settleTree is settle for one tree.
func (l *Layer) settleTree(n int, all []Change, wasGone bool) []Change {
	lower, err := l.OpenTree(n)
	switch {
	case isGone(err):
		return mark(all, conflictGone)
	case err != nil:
		return mark(all, conflictClosed+files.Plain(err).Error())
	case wasGone:
		lower.Close()
		return mark(all, conflictWasGone)
	}
	upper, _ := l.OpenUpper(n) // without it, nothing is real by now
	s := newSettler(all, upper, lower)
	defer s.close()
	var out []Change
	for i := range all {
		if s.settle(&all[i]) {
			out = append(out, all[i])
		}
	}
	return out
}

func mark(all []Change, conflict string) []Change {
	for i := range all {
		all[i].Conflict = conflict
	}
	return all
}

func newSettler(part []Change, upper, lower *os.File) *settler {
	s := &settler{
		dirs:  make(map[string]bool),
		gone:  make(map[string]bool),
		upper: finder{top: upper},
		lower: finder{top: lower},
	}
	for i := range part {
		c := &part[i]
		s.gone[c.Path] = c.Op == Remove
		if c.Op != Remove && c.Type.IsDir() && (c.Was == nil || !c.Was.Mode.IsDir()) {
			s.dirs[c.Path] = true
		}
	}
	return s
}

func (s *settler) close() {
	s.upper.close()
	s.lower.close()
}

// finder finds entries below a directory. It keeps the directory that the last one was in open: in a sorted
// list the next one is near.
type finder struct {
	top  *os.File // nil if there is none
	path string
	dir  *os.File // at path; nil if none was opened
	err  error    // why
}

// find returns an entry, nil if its directory has none of that name. It follows no link.
func (f *finder) find(rel string) (*entry, error) {
	dir := path.Dir(rel)
	if f.err != nil && strings.HasPrefix(dir+"/", f.path+"/") {
		return nil, f.err // where one is not there, none is below
	}
	if f.dir == nil || dir != f.path {
		_ = f.dir.Close() // nil is an error, too
		f.path = dir
		f.dir, f.err = safepath.OpenBelow(f.top, dir, unix.O_DIRECTORY|safepath.SearchOnly)
	}
	if f.err != nil {
		return nil, f.err
	}
	return look(f.dir, path.Base(rel))
}

func (f *finder) close() {
	_ = f.dir.Close()
	_ = f.top.Close()
}

// settle finds the conflict of a change. It is not kept if the tree has it by now.
func (s *settler) settle(c *Change) (keep bool) {
	now, err := s.lower.find(c.Path)
	above := isGone(err) // the directory that it is in is not there
	if err != nil && !above {
		c.Conflict = conflictClosed + files.Plain(err).Error()
		return true
	}
	if now == nil && c.Op == Remove {
		return false
	}
	differs := c.Was == nil || now == nil || c.Was.differs(now)
	if now != nil && c.Op != Remove && (differs || c.Type.IsDir()) {
		up, err := s.upper.find(c.Path)
		if err == nil && up != nil {
			is, _ := same(up, now)
			if is {
				return false
			}
		}
	}
	c.Conflict = s.conflict(c, now, above)
	return true
}

// conflict returns how the tree has changed in the place of a change.
func (s *settler) conflict(c *Change, now *entry, above bool) string {
	if c.Was != nil && c.Was.Late {
		return conflictLate
	}
	if above && !s.dirs[path.Dir(c.Path)] {
		return conflictAbove
	}
	if now == nil && c.Lost {
		return conflictLost
	}
	switch {
	case now == nil && c.Was == nil:
		return ""
	case now == nil:
		return conflictRemoved
	case c.Was == nil:
		return conflictMade
	}
	if c.Was.changed(now) {
		return conflictChanged
	}
	if now.isDir() && (c.Op == Remove || !c.Type.IsDir()) {
		return s.filled(c, now)
	}
	return ""
}

// filled looks for something in a directory that the change removes, and that no change removes.
func (s *settler) filled(c *Change, now *entry) string {
	if !c.Was.differs(now) {
		return ""
	}
	dir, err := now.list()
	if err != nil {
		return conflictClosed + files.Plain(err).Error()
	}
	defer dir.Close()
	names, err := list(dir, maxChanges)
	if err != nil {
		return conflictClosed + files.Plain(err).Error()
	}
	for _, name := range names {
		if !s.gone[path.Join(c.Path, name)] {
			return conflictNew
		}
	}
	return ""
}

// differs reports whether anything may have changed since.
func (s *State) differs(now *entry) bool {
	n := now.state()
	n.Sum = s.Sum
	n.Late = s.Late
	return *n != *s
}

// Unchanged reports whether an entry of an open directory still is as it was, but for what does not matter.
func (s *State) Unchanged(dir *os.File, name string) bool {
	now, err := look(dir, name)
	return err == nil && now != nil && !s.changed(now)
}

// changed reports whether something has changed since that matters: of a file more than its times, and of a
// directory not what is in it.
func (s *State) changed(now *entry) bool {
	if !s.differs(now) {
		return false
	}
	if s.Mode != now.mode || s.UID != now.st.Uid || s.GID != now.st.Gid {
		return true
	}
	if !s.Mode.IsRegular() && s.Mode&fs.ModeSymlink == 0 {
		return false
	}
	if s.Size != now.st.Size || s.Sum == "" {
		return true
	}
	sum, err := now.sum()
	return err != nil || sum != s.Sum
}
