package deny

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
)

// walk searches dir for what the globs match, without following links, in any order. In a big
// tree two goroutines do it.
func (d *denials) walk(dir string, globs glob.State) ([]hit, error) {
	w := &walker{host: d.Host, todo: []unseen{{dir, globs}}, visited: d.visited}
	w.ready.L = &w.mu
	w.work()
	w.help.Wait()
	d.visited = w.visited
	return w.found, w.err
}

// unseen is a directory to look into, and what is left of the globs there.
type unseen struct {
	dir   string
	globs glob.State
}

// path returns the path of an entry. path.Join would check each byte of it.
func (at unseen) path(name string) string { return strings.TrimSuffix(at.dir, "/") + "/" + name }

// walker is one walk through a tree.
type walker struct {
	host *host.Host
	help sync.WaitGroup // the second goroutine

	mu      sync.Mutex // guards what follows
	ready   sync.Cond  // todo, busy or err changed
	todo    []unseen
	busy    int // goroutines that look into a directory
	helped  bool
	visited int
	found   []hit
	err     error // the first one, which ends the walk
}

const (
	manyDirs = 32 // how many directories must wait before a second goroutine is worth its start
	atOnce   = 16 // how many a goroutine takes then
)

// work looks into directories until none is left.
func (w *walker) work() {
	counts := make(map[uint64]bool)
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.todo) == 0 && w.busy > 0 && w.err == nil {
			w.ready.Wait()
		}
		if len(w.todo) == 0 || w.err != nil {
			return
		}
		rest := len(w.todo) - 1
		if len(w.todo) > manyDirs {
			rest = len(w.todo) - atOnce
			if !w.helped {
				w.helped = true
				w.help.Go(w.work)
			}
		}
		some := slices.Clone(w.todo[rest:])
		w.todo = w.todo[:rest]
		w.busy++
		w.mu.Unlock()
		found, below, seen, err := w.look(some, counts)
		w.mu.Lock()
		w.busy--
		w.visited += seen
		if err == nil && w.visited > maxVisited {
			err = errTooLarge
		}
		if w.err == nil {
			w.err = err
		}
		w.found = append(w.found, found...)
		w.todo = append(w.todo, below...)
		w.ready.Broadcast()
	}
}

// look returns what is denied in some directories, the directories in which more may be, and how
// many names it has seen. counts has CountsDirs of file systems.
func (w *walker) look(dirs []unseen, counts map[uint64]bool) (found []hit, below []unseen, seen int, _ error) {
	for _, at := range dirs {
		hits, names, ok := at.lookUp(w.host, counts)
		if !ok {
			var deeper []unseen
			var err error
			hits, deeper, names, err = at.list(w.host)
			if err != nil {
				return nil, nil, 0, err
			}
			below = append(below, deeper...)
		}
		found = append(found, hits...)
		seen += names
	}
	return found, below, seen, nil
}

// maxNames is how many names are looked up before reading a directory costs less.
const maxNames = 8

// lookUp is list for a directory that has no other directories, if no wildcard can match there. It
// looks names up, which takes a tenth of the time for a hundred files. ok is false if the
// directory has to be listed. The directory is looked at last: if it is gone, it may have moved.
func (at unseen) lookUp(h *host.Host, counts map[uint64]bool) (found []hit, seen int, ok bool) {
	names, ok := at.globs.Literals()
	if !ok || len(names) > maxNames || h.CountsDirs == nil {
		return nil, 0, false
	}
	for _, name := range names {
		p := at.path(name)
		switch there := h.Look(p); there.Presence {
		case host.Unknown:
			return nil, 0, false
		case host.Present:
			found = append(found, hit{Path: p, dir: there.IsDir(), link: there.IsLink()})
		}
	}
	dir := h.Look(at.dir)
	if !dir.IsDir() || dir.Stat.Nlink != 2 {
		return nil, 0, false
	}
	counted, known := counts[dir.Stat.ID.Dev]
	if !known {
		counted = h.CountsDirs(at.dir)
		counts[dir.Stat.ID.Dev] = counted
	}
	return found, len(names), counted
}

// list returns what is denied in a directory, the directories in which more may be, and how many
// entries it has.
func (at unseen) list(h *host.Host) (found []hit, below []unseen, seen int, _ error) {
	entries, err := h.Unsorted(at.dir)
	if errors.Is(err, fs.ErrPermission) {
		return []hit{{Path: at.dir, closed: true}}, nil, 0, nil
	}
	if err != nil {
		return nil, nil, 0, err
	}
	for _, e := range entries {
		if !e.IsDir() { // there are many, and few match
			if at.globs.Names(e.Name()) {
				found = append(found, hit{Path: at.path(e.Name()), link: e.Type()&fs.ModeSymlink != 0})
			}
			continue
		}
		deeper, named := at.globs.Enter(e.Name())
		switch p := at.path(e.Name()); {
		case named:
			found = append(found, hit{Path: p, dir: true})
		case len(deeper) > 0:
			below = append(below, unseen{p, deeper})
		}
	}
	return found, below, len(entries), nil
}
