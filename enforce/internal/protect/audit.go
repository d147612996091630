package protect

import (
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/policy"
)

// Watched is a path that is looked at before and after the command.
type Watched struct {
	Path    string
	Mounted bool     // it is read-only for the command; only a replacement can be seen
	ByGit   bool     // git itself writes it: it is told, and nothing more
	missing bool     // it did not exist when the plan was made
	tree    string   // Path is the index of this working tree, whose gitlinks matter
	top     int      // of what is missing, how much of Path is the directory that was listed; 0 for none
	had     []string // of what the rest of Path has a "*" for, or of a directory on PATH, what was there
	hides   []string // Path is a directory on PATH: those after it
}

// Change is a file of the protected set, or a denied one, that is not as it
// was.
type Change struct {
	Path string
	New  bool // it was not there before
}

// Snapshot is how the protected set was at one time.
type Snapshot struct {
	host  *policy.Host
	audit *Audit
	files []fileState // of what was there
	globs []policy.DenyPath
	known map[string]bool // what the globs named already
	left  int             // bytes of indexes that are read yet
	links map[string]bool // gitlinks there were, where a repository that was looked at may be one
}

// fileState is what is remembered of a file; the zero value but for the path
// is none.
type fileState struct {
	path    string
	tree    string // as in Watched
	deep    bool   // look at the entries of a directory as well
	exists  bool
	id      policy.FileID
	changed [2]int64 // status change time, in seconds and nanoseconds
	size    int64
	entries []string
}

// Audit is what is compared before and after the command.
type Audit struct {
	Trees   []string // writable
	Watch   []Watched
	Held    []string          // files that the command could not change, beside these
	Later   []policy.DenyPath // denials of what is not there yet
	Mounted bool              // what Watched.Mounted says is so
}

// Snapshot remembers how it is now.
func (a *Audit) Snapshot(host *policy.Host) *Snapshot {
	s := &Snapshot{host: host, audit: a, left: maxIndexes}
	for _, w := range a.Watch {
		if !w.missing && w.hides == nil {
			state := stateOf(host, w.Path, !w.Mounted || !a.Mounted)
			state.tree = w.tree
			if w.tree != "" && a.nested(w.tree) {
				s.noteLinks(w.tree, indexed(w.Path, &s.left))
			}
			s.files = append(s.files, state)
		}
	}
	for _, d := range a.Later {
		if d.Glob {
			s.globs = append(s.globs, d)
		} else {
			s.files = append(s.files, stateOf(host, d.Pattern, true))
		}
	}
	if len(s.globs) > 0 {
		s.known = make(map[string]bool)
		for _, h := range s.matches() {
			s.known[h] = true
		}
	}
	return s
}

// Changes says what is different now, sorted by path; of new repositories, those
// only that are not plain.
func (s *Snapshot) Changes() []Change {
	var out []Change
	s.left = maxIndexes
	for _, old := range s.files {
		now := stateOf(s.host, old.path, old.deep)
		switch {
		case !now.exists || now.equal(&old):
		case old.tree != "":
			out = append(out, s.newGitlinks(old.path, old.tree)...)
		default:
			out = append(out, Change{Path: old.path, New: !old.exists})
		}
	}
	top := &policy.Listing{}
	for _, w := range s.audit.Watch {
		if dir := w.Path[:w.top]; dir != top.Dir && dir != "" {
			top = policy.List(s.host, dir)
		}
		switch name := w.Path[w.top:]; {
		case w.hides != nil:
			out = append(out, s.hidden(&w)...)
		case w.top > 0 && strings.Contains(name, "*"):
			for _, p := range matching(s.host, top, name) {
				if !slices.Contains(w.had, p) {
					out = append(out, Change{Path: p, New: true})
				}
			}
		case w.missing && !(w.top > 0 && top.Lacks(name)) && stateOf(s.host, w.Path, false).exists:
			out = append(out, Change{Path: w.Path, New: true})
		}
	}
	out = slices.DeleteFunc(out, func(c Change) bool {
		return c.New && path.Base(c.Path) == ".git" && plain(s.host, c.Path, path.Dir(c.Path), &s.left)
	})
	for _, h := range s.matches() {
		if !s.known[h] {
			out = append(out, Change{Path: h, New: true})
		}
	}
	slices.SortFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(out)
}

// matches are the existing paths that the globs name.
func (s *Snapshot) matches() []string {
	if len(s.globs) == 0 {
		return nil
	}
	d := deny.NewDenials(deny.Request{Host: s.host, Deny: s.globs})
	var out []string
	for _, tree := range s.audit.Trees {
		globs := slices.DeleteFunc(slices.Clone(d.Deny), func(b deny.Barred) bool { return !b.Reaches(tree) })
		if len(globs) == 0 {
			continue
		}
		hits, err := d.Walk(tree, deny.Together(globs).At(tree))
		if err != nil {
			continue
		}
		for _, h := range hits {
			if !h.Closed {
				out = append(out, h.Path)
			}
		}
	}
	return out
}

// maxWatchedEntries bounds what is looked at of one directory.
const maxWatchedEntries = 100

// stateOf looks at one path.
func stateOf(host *policy.Host, p string, deep bool) fileState {
	s := fileState{path: p, deep: deep}
	mode, ok := s.look(p)
	if !ok || !deep || mode&fs.ModeDir == 0 {
		return s
	}
	entries, err := host.ReadDir(p)
	if err != nil {
		return s
	}
	for _, e := range entries[:min(len(entries), maxWatchedEntries)] {
		in := fileState{}
		in.look(path.Join(p, e.Name()))
		s.entries = append(s.entries, in.key(e.Name()))
	}
	return s
}

func (s *fileState) equal(o *fileState) bool {
	return s.exists == o.exists && s.id == o.id && s.changed == o.changed && s.size == o.size &&
		slices.Equal(s.entries, o.entries)
}
