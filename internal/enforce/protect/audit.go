package protect

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/deny"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
)

// Compared is a path that is compared before and after the command.
type Compared struct {
	Path string
	Kind Kind
	tree string // the working tree of an Index
}

// Kind says what a Compared path is, and so which changes are reported.
type Kind uint8

const (
	Any       Kind = iota // any change, in a directory also of its entries
	Missing               // that it was made; it did not exist when the plan was made
	ByGit                 // any change; git itself may write it, so nothing prevents that
	Index                 // new gitlinks in the index of a working tree
	Protected             // a replacement, if it is read-only for the command (Audit.Mounted); else any change
	Denied                // a replacement; programs outside may write it
	Content               // other content or modes; programs write it anew as it was
)

// kindOf returns the kind of a path: it exists, or may be made.
func kindOf(at host.Found) Kind {
	if at.Presence == host.Absent {
		return Missing
	}
	return Any
}

// project is a directory in which new files of a project are reported.
type project struct {
	dir    string
	had    []string // what was there
	closed []string // what could not be looked at
}

// Change is a protected or denied file that changed.
type Change struct {
	Path   string
	New    bool // it was not there before
	Closed bool // not all of it can be seen: what is in it may have changed
}

// Audit is what is compared before and after the command.
type Audit struct {
	Paths    []Compared
	Near     []string // directories near the top of a tree that have neither a repository nor a policy
	Repos    []string // git directories whose configuration is protected
	projects []project

	// The caller knows these.
	Trees   []string           // writable trees
	Later   []resolve.DenyPath // denials of what does not exist yet
	Mounted bool               // there is a mount namespace
}

// Snapshot is the state of the protected set at one time.
type Snapshot struct {
	plain  *host.Host
	host   *host.Host // the same, charged to left
	audit  *Audit
	before []state         // of Audit.Paths
	named  map[string]bool // what existed already and matched Audit.Later; true for closed directories
	left   int             // how many bytes of indexes and of paths may still be read and looked up
	links  map[string]bool // earlier gitlinks of working trees that have a protected repository in them
}

// Snapshot records the state now. What the plan found in trees is not searched for again.
func (a *Audit) Snapshot(h *host.Host, found deny.Searched) *Snapshot {
	s := &Snapshot{
		plain:  h,
		audit:  a,
		before: make([]state, len(a.Paths)),
		left:   maxIndexes,
		links:  make(map[string]bool),
	}
	s.host = charged(h, &s.left)
	for i, w := range a.Paths {
		if w.Kind == Missing {
			s.before[i] = state{presence: host.Absent}
		} else {
			s.before[i] = s.state(w)
		}
		if w.Kind == Index {
			s.noteLinks(w.Path, w.tree)
		}
	}
	s.named = deny.Existing(h, a.Trees, a.Later, found)
	return s
}

// Changes returns what changed since the snapshot, sorted by path. It leaves out new
// repositories that are plain.
func (s *Snapshot) Changes() []Change {
	s.left = maxIndexes
	var out []Change
	for i, w := range s.audit.Paths {
		out = append(out, s.changed(w, s.before[i], s.state(w))...)
	}
	for _, p := range s.audit.projects {
		out = append(out, s.newIn(p)...)
	}
	for _, dir := range s.audit.Near {
		for _, p := range []string{dir + dotGit, dir + projectFile} {
			switch s.host.Look(p).Presence {
			case host.Unknown:
				out = append(out, s.closed(p))
			case host.Present:
				out = append(out, s.made(p)...)
			}
		}
	}
	for p, closed := range deny.Existing(s.plain, s.audit.Trees, s.audit.Later, nil) {
		if _, known := s.named[p]; known {
			continue
		}
		out = append(out, Change{Path: p, New: !closed, Closed: closed})
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(out, func(a, b Change) bool { return a.Path == b.Path })
}

// changed returns what to report of a compared path.
func (s *Snapshot) changed(w Compared, was, now state) []Change {
	if now.presence == host.Absent {
		return nil
	}
	if now.unlisted { // also if it was before: what is in it may have changed
		return []Change{s.closed(w.Path)}
	}
	if now == was {
		return nil
	}
	if now.presence == host.Unknown {
		return []Change{s.closed(w.Path)}
	}
	if w.Kind == Index {
		return s.newGitlinks(w.Path, w.tree)
	}
	if was.presence == host.Absent {
		return s.made(w.Path)
	}
	return []Change{{Path: w.Path}}
}

// made returns what to report of a new path: of a repository, what is not plain in it.
func (s *Snapshot) made(p string) []Change {
	if path.Base(p) == ".git" && s.host.Look(p).IsDir() {
		return s.strange(p, path.Dir(p))
	}
	return []Change{{Path: p, New: true}}
}

// newIn returns the new files of a project, and what can't be looked at any more.
func (s *Snapshot) newIn(p project) (out []Change) {
	has, closed := present(s.host, host.ListAll(s.host, p.dir))
	for _, name := range has {
		if !slices.Contains(p.had, name) {
			unseen := slices.ContainsFunc(p.closed, func(c string) bool { return host.Within(name, c) })
			out = append(out, Change{Path: name, New: !unseen})
		}
	}
	for _, c := range closed {
		if !slices.Contains(p.closed, c.path) {
			out = append(out, s.closed(c.path))
		}
	}
	return out
}

// closed returns the change that a path can't be looked at. It names the innermost directory on
// the way that can be.
func (s *Snapshot) closed(p string) Change {
	for p != "/" && s.host.Look(p).Presence != host.Present {
		p = path.Dir(p)
	}
	return Change{Path: p, Closed: true}
}

// state is what a snapshot has of a path. The zero value is for one that can't be looked at. It
// has the status change time, which the command can't set back.
type state struct {
	presence host.Presence
	id       host.FileID
	changed  [2]int64 // status change time, in seconds and nanoseconds
	size     int64
	entries  string // of a writable directory
	unlisted bool   // a writable directory whose entries are not all known
}

// These limit what is looked at in a directory. Beyond them its entries are not all known.
const (
	maxComparedEntries = 4096
	maxComparedContent = 64 << 20 // bytes, of a Content
)

func (s *Snapshot) state(w Compared) state {
	now, isDir := stateOf(w.Path)
	switch {
	case w.Kind == Denied:
		return state{presence: now.presence, id: now.id}
	case w.Kind == Content:
		return s.content(w.Path, now, isDir)
	case !isDir, w.Kind == Protected && s.audit.Mounted:
		return now
	}
	entries, err := s.host.Entries(w.Path, -1)
	now.unlisted = len(entries) > maxComparedEntries || err != nil && !s.another(w.Path, err)
	all := sha256.New()
	for _, e := range entries[:min(len(entries), maxComparedEntries)] {
		in, _ := stateOf(path.Join(w.Path, e.Name()))
		fmt.Fprintln(all, e.Name(), in)
	}
	now.entries = string(all.Sum(nil))
	return now
}

// another reports whether a directory can't be listed because it belongs to another user, who
// closed it to the command as well.
func (s *Snapshot) another(dir string, err error) bool {
	at := s.host.Look(dir)
	return errors.Is(err, fs.ErrPermission) && at.Presence == host.Present && !s.host.MayOpen(dir, at.Stat)
}

// lstat is replaced by tests.
var lstat = unix.Lstat

// content is the state of a file or a directory whose times do not count: what it has, and modes.
func (s *Snapshot) content(p string, now state, isDir bool) state {
	out := state{presence: now.presence}
	switch {
	case now.presence != host.Present:
	case !isDir:
		out.entries, _ = s.digest(p)
	default:
		entries, err := s.host.Entries(p, -1)
		out.unlisted = err != nil || len(entries) > maxComparedEntries
		all := sha256.New()
		left := maxComparedContent
		for _, e := range entries[:min(len(entries), maxComparedEntries)] {
			fmt.Fprintln(all, e.Name())
			if e.IsDir() {
				continue
			}
			if left < 0 {
				out.unlisted = true
				break
			}
			text, size := s.digest(path.Join(p, e.Name()))
			fmt.Fprintln(all, text)
			left -= size
		}
		out.entries = string(all.Sum(nil))
	}
	return out
}

// digest describes a file by its mode, where it leads as a link, and its content. It returns how
// many bytes it read.
func (s *Snapshot) digest(p string) (text string, size int) {
	to := s.host.Way(p)
	content, err := s.host.ReadFile(to.Path)
	if err != nil { // it is too big, or no file
		now, _ := stateOf(to.Path)
		return fmt.Sprint(to.Path, now), 0
	}
	return fmt.Sprint(to.Path, to.Stat.Mode, sha256.Sum256(content)), len(content)
}

// stateOf returns the state of one path (lstat(2)).
func stateOf(p string) (s state, isDir bool) {
	var st unix.Stat_t
	err := lstat(p, &st)
	if err != nil {
		return state{presence: host.Seen(host.Stat{}, err).Presence}, false
	}
	return state{
		presence: host.Present,
		id:       host.FileID{Dev: uint64(st.Dev), Ino: st.Ino},
		changed:  [2]int64{int64(st.Ctim.Sec), int64(st.Ctim.Nsec)},
		size:     st.Size,
	}, st.Mode&unix.S_IFMT == unix.S_IFDIR
}
