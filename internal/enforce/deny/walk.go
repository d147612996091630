package deny

import (
	"errors"
	"io/fs"
	"path"
	"sync"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/policy"
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

// walker is one walk through a tree.
type walker struct {
	host *policy.Host
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

// manyDirs is how many directories must wait before a second goroutine is worth its start.
const manyDirs = 32

// work looks into directories until none is left.
func (w *walker) work() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.todo) == 0 && w.busy > 0 && w.err == nil {
			w.ready.Wait()
		}
		if len(w.todo) == 0 || w.err != nil {
			return
		}
		if len(w.todo) > manyDirs && !w.helped {
			w.helped = true
			w.help.Go(w.work)
		}
		last := len(w.todo) - 1
		at := w.todo[last]
		w.todo = w.todo[:last]
		w.busy++
		w.mu.Unlock()
		found, below, seen, err := at.look(w.host)
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

// look returns what is denied in a directory, the directories in which more may be, and how many
// entries it has.
func (at unseen) look(host *policy.Host) (found []hit, below []unseen, seen int, _ error) {
	entries, err := host.Unsorted(at.dir)
	if errors.Is(err, fs.ErrPermission) {
		return []hit{{Path: at.dir, closed: true}}, nil, 0, nil
	}
	if err != nil {
		return nil, nil, 0, err
	}
	for _, e := range entries {
		if !e.IsDir() { // there are many, and few match
			if at.globs.Names(e.Name()) {
				found = append(found, hit{Path: path.Join(at.dir, e.Name()), link: e.Type()&fs.ModeSymlink != 0})
			}
			continue
		}
		deeper, named := at.globs.Enter(e.Name())
		switch p := path.Join(at.dir, e.Name()); {
		case named:
			found = append(found, hit{Path: p, dir: true})
		case len(deeper) > 0:
			below = append(below, unseen{p, deeper})
		}
	}
	return found, below, len(entries), nil
}
