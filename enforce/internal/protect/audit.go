package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/policy"
)

// Watched is a path that is compared before and after the command.
type Watched struct {
	Path string
	Kind Kind
	tree string // the working tree of an Index
}

// Kind says what a Watched path is, and so which changes are reported.
type Kind uint8

const (
	Any       Kind = iota // any change, in a directory also of its entries
	Missing               // that it was made; it did not exist when the plan was made
	ByGit                 // any change; git itself may write it, so nothing prevents that
	Index                 // new gitlinks in the index of a working tree
	Protected             // a replacement, if it is read-only for the command (Audit.Mounted); else any change
	Denied                // a replacement; programs outside may write it
)

// kindOf returns the kind of a path by the error of lstat(2).
func kindOf(err error) Kind {
	if errors.Is(err, fs.ErrNotExist) {
		return Missing
	}
	return Any
}

// project is a directory in which new files of a project are reported.
type project struct {
	dir string
	had []string // what was there
}

// Change is a protected or denied file that changed.
type Change struct {
	Path string
	New  bool // it was not there before
}

// Audit is what is compared before and after the command.
type Audit struct {
	Watch    []Watched
	Near     []string // directories near the top of a tree that have neither a repository nor a policy
	Repos    []string // git directories whose configuration is protected
	projects []project

	// The caller knows these.
	Trees   []string          // writable trees
	Later   []policy.DenyPath // denials of what does not exist yet
	Mounted bool              // there is a mount namespace
}

// Snapshot is the state of the protected set at one time.
type Snapshot struct {
	host   *policy.Host
	audit  *Audit
	before []state         // of Audit.Watch
	named  map[string]bool // what existed already and matched Audit.Later
	left   int             // how many bytes of indexes and of paths may still be read and looked up
	links  map[string]bool // earlier gitlinks of working trees that have a protected repository in them
}

// Snapshot records the state now.
func (a *Audit) Snapshot(host *policy.Host) *Snapshot {
	s := &Snapshot{audit: a, before: make([]state, len(a.Watch)), left: maxIndexes,
		links: make(map[string]bool), named: make(map[string]bool)}
	s.host = charged(host, &s.left)
	for i, w := range a.Watch {
		if w.Kind != Missing {
			s.before[i] = s.state(w)
		}
		if w.Kind == Index {
			s.noteLinks(w.Path, w.tree)
		}
	}
	for _, p := range deny.Existing(host, a.Trees, a.Later) {
		s.named[p] = true
	}
	return s
}

// Changes returns what changed since the snapshot, sorted by path. It leaves out new
// repositories that are plain.
func (s *Snapshot) Changes() []Change {
	s.left = maxIndexes
	var out []Change
	appeared := func(p string) { out = append(out, Change{Path: p, New: true}) }
	made := func(p string) {
		if path.Base(p) != ".git" || !plain(s.host, p, path.Dir(p), &s.left) {
			appeared(p)
		}
	}
	for i, w := range s.audit.Watch {
		switch now := s.state(w); {
		case now == state{} || now == s.before[i]:
		case w.Kind == Index:
			out = append(out, s.newGitlinks(w.Path, w.tree)...)
		case s.before[i] != state{}:
			out = append(out, Change{Path: w.Path})
		default:
			made(w.Path)
		}
	}
	for _, p := range s.audit.projects {
		for _, name := range present(s.host, policy.ListAll(s.host, p.dir)) {
			if !slices.Contains(p.had, name) {
				appeared(name)
			}
		}
	}
	for _, dir := range s.audit.Near {
		for _, p := range []string{dir + dotGit, dir + projectFile} {
			if now, _ := stateOf(p); now != (state{}) {
				made(p)
			}
		}
	}
	for _, p := range deny.Existing(s.host, s.audit.Trees, s.audit.Later) {
		if !s.named[p] {
			appeared(p)
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(out)
}

// state is what a snapshot has of a file. The zero value is for a missing file. It has the
// status change time, which the command can't set back.
type state struct {
	id      policy.FileID
	changed [2]int64 // status change time, in seconds and nanoseconds
	size    int64
	entries string // of a writable directory
}

// maxWatchedEntries is how many entries of a directory are looked at.
const maxWatchedEntries = 100

func (s *Snapshot) state(w Watched) state {
	now, isDir := stateOf(w.Path)
	switch {
	case w.Kind == Denied:
		return state{id: now.id}
	case !isDir, w.Kind == Protected && s.audit.Mounted:
		return now
	}
	entries, _ := s.host.Entries(w.Path, -1)
	for _, e := range entries[:min(len(entries), maxWatchedEntries)] {
		in, _ := stateOf(path.Join(w.Path, e.Name()))
		now.entries += fmt.Sprintln(e.Name(), in)
	}
	return now
}

// stateOf returns the state of one path (lstat(2)).
func stateOf(p string) (s state, isDir bool) {
	var st unix.Stat_t
	if unix.Lstat(p, &st) != nil {
		return s, false
	}
	return state{
		id:      policy.FileID{Dev: uint64(st.Dev), Ino: st.Ino},
		changed: [2]int64{int64(st.Ctim.Sec), int64(st.Ctim.Nsec)},
		size:    st.Size,
	}, st.Mode&unix.S_IFMT == unix.S_IFDIR
}
