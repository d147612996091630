package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
)

// Size returns how much space the layer takes on the disk, and how many entries it has that are neither
// directories nor removals. What is in a directory that is closed to its owner, or too deep, is not counted.
func (l *Layer) Size() (bytes int64, files int, err error) {
	s := sizer{seen: make(map[uint64]bool)}
	for n := range l.Trees {
		upper, err := os.Open(l.TreeDir(n) + "/upper")
		if err == nil {
			err = s.dir(upper, 0)
			upper.Close()
		}
		if err != nil {
			return 0, 0, fmt.Errorf("layer %s: %w", l.Session, err)
		}
	}
	return s.bytes, s.files, nil
}

type sizer struct {
	seen  map[uint64]bool // inodes with several names
	bytes int64
	files int
}

func (s *sizer) dir(dir *os.File, depth int) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		e, err := look(dir, name)
		if err != nil {
			return err
		}
		if !e.isDir() {
			s.add(e)
			continue
		}
		s.bytes += e.st.Blocks * blockSize
		below, err := e.list()
		if errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err == nil && depth < maxDepth {
			err = s.dir(below, depth+1)
		}
		_ = below.Close() // nil is an error, too
		if err != nil {
			return err
		}
	}
	return nil
}

const blockSize = 512 // of st_blocks (inode(7))

func (s *sizer) add(e *entry) {
	if e.whiteout() {
		return
	}
	s.files++
	if e.st.Nlink > 1 {
		if s.seen[e.st.Ino] {
			return
		}
		s.seen[e.st.Ino] = true
	}
	s.bytes += e.st.Blocks * blockSize
}

// doomed begins the name of a layer that is being removed, and is none any more.
const doomed = ".removed-"

// Remove removes the layer and all that is in it, and what an earlier Remove that was interrupted left.
func (l *Layer) Remove() error {
	store := filepath.Dir(l.Dir)
	err := os.Rename(l.Dir, filepath.Join(store, doomed+filepath.Base(l.Dir)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return sweep(store)
}

// sweep removes what is left of layers. What is deep comes to the top by and by.
func sweep(store string) error {
	dir, err := os.Open(store)
	if err != nil {
		return err
	}
	defer dir.Close()
	r := remover{top: dir}
	for {
		r.moved = 0
		entries, err := files.List(store, -1)
		if err != nil {
			return err
		}
		var errs []error
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), doomed) {
				errs = append(errs, r.remove(dir, e.Name(), 0))
			}
		}
		if r.moved == 0 {
			return errors.Join(errs...)
		}
	}
}

// remover removes directories that may be closed, or deeper than descriptors suffice for.
type remover struct {
	top   *os.File
	moved int // directories that were deep, and are in top now
}

// remove removes an entry of a directory, and all that is in it. What is gone already is no error.
func (r *remover) remove(dir *os.File, name string, depth int) error {
	e, err := look(dir, name)
	if err != nil || e == nil {
		return err
	}
	if !e.isDir() {
		return removed("unlink", name, unix.Unlinkat(int(dir.Fd()), name, 0))
	}
	if e.mode&0o700 != 0o700 {
		err = unix.Fchmodat(int(dir.Fd()), name, 0o700, 0)
	}
	if err == nil && depth == maxDepth {
		r.moved++
		to := doomed + uuid.NewString()
		return removed("rename", name, unix.Renameat(int(dir.Fd()), name, int(r.top.Fd()), to))
	}
	if err == nil {
		err = r.empty(e, depth)
	}
	if err == nil {
		err = unix.Unlinkat(int(dir.Fd()), name, unix.AT_REMOVEDIR)
	}
	return removed("rmdir", name, err)
}

// empty removes what is in a directory.
func (r *remover) empty(e *entry, depth int) error {
	dir, err := e.list()
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	errs := []error{err}
	for _, name := range names {
		errs = append(errs, r.remove(dir, name, depth+1))
	}
	return errors.Join(errs...)
}

// removed is the error of a system call that removes something.
func removed(call, name string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s %q: %w", call, name, err)
}
