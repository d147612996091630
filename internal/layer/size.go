package layer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/safepath"
)

// Size returns how many bytes the layer takes on the disk, with what applies keep to take them back, and how
// many entries it has that are neither directories nor removals. What is in a directory that is closed to its
// owner, or too deep, is not counted.
func (l *Layer) Size() (bytes int64, n int, err error) {
	s := sizer{seen: make(map[uint64]bool)}
	var errs []error
	for i := range l.Trees {
		errs = append(errs, s.open(l.TreeDir(i)+"/upper"))
	}
	n = s.files
	entries, err := files.List(l.Dir, -1)
	errs = append(errs, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), KeptPrefix) {
			errs = append(errs, s.open(filepath.Join(l.Dir, e.Name())))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return 0, 0, fmt.Errorf("layer %s: %w", l.Session, err)
	}
	return s.bytes, n, nil
}

// KeptPrefix begins the names of the directories, in that of a layer, with what an apply has replaced or removed.
const KeptPrefix = "old-"

// open counts a directory.
func (s *sizer) open(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.dir(dir, 0)
}

type sizer struct {
	seen  map[uint64]bool // inodes with several names
	bytes int64
	files int
}

func (s *sizer) dir(dir *os.File, depth int) error {
	names, err := dir.Readdirnames(-1)
	if isGone(err) { // removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		e, err := look(dir, name)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		if !e.isDir() {
			s.add(e)
			continue
		}
		s.bytes += e.st.Blocks * blockSize
		below, err := e.list()
		if errors.Is(err, fs.ErrPermission) || isGone(err) {
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
	dir := filepath.Join(store, doomed+filepath.Base(l.Dir))
	err := os.Rename(l.Dir, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for n := range l.Trees { // where nothing was written, that is nearly all
		for _, name := range []string{"upper", "lower", "work/work", "work", ""} {
			_ = unix.Rmdir(filepath.Join(dir, strconv.Itoa(n), name))
		}
	}
	return sweep(store)
}

// Clear removes the directory of all layers in a state directory. It is an error if one is there.
func Clear(state string) error {
	dir, err := store(state)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil
	}
	if err == nil {
		err = sweep(dir)
	}
	if err != nil {
		return err
	}
	if err := unix.Rmdir(dir); err != nil {
		return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}

// sweep removes what is left of layers.
func sweep(store string) error {
	entries, err := files.List(store, -1)
	errs := []error{err}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), doomed) {
			errs = append(errs, safepath.RemoveTree(filepath.Join(store, e.Name())))
		}
	}
	return errors.Join(errs...)
}
