package review

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/safepath"
)

var errNoFile = errors.New("it is no file any more")

// opened are the directories of a layer and of its trees. A tree that has gone is nil.
type opened struct {
	layer []*os.File
	trees []*os.File
}

// Of makes a review of a layer's changes. The host is the one on which they would be made real.
func Of(l *layer.Layer, changes []layer.Change, h *host.Host) (*Review, error) {
	d, err := open(l)
	if err != nil {
		return nil, err
	}
	return New(&l.Record, changes, d, h, protect.UserSettings(h)), nil
}

func open(l *layer.Layer) (*opened, error) {
	d := &opened{}
	for i := range l.Trees {
		upper, err := l.OpenUpper(i)
		if err != nil {
			d.Close()
			return nil, err
		}
		d.layer = append(d.layer, upper)
		tree, _ := l.OpenTree(i) // it may have gone: then what it had can't be read
		d.trees = append(d.trees, tree)
	}
	return d, nil
}

// Close closes the directories.
func (d *opened) Close() {
	for _, dir := range slices.Concat(d.layer, d.trees) {
		_ = dir.Close() // nil is an error, too
	}
}

// dir returns the directory of a tree, or of its layer.
func (d *opened) dir(tree int, old bool) *os.File {
	if old {
		return d.trees[tree]
	}
	return d.layer[tree]
}

// Text opens without waiting: what was a file may be a FIFO now.
func (d *opened) Text(tree int, rel string, old bool) ([]byte, error) {
	f, err := safepath.OpenBelow(d.dir(tree, old), rel, os.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = errNoFile
	}
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(int(min(st.Size(), maxText)) + bytes.MinRead)
	_, err = b.ReadFrom(io.LimitReader(f, maxText+1))
	return b.Bytes(), err
}

func (d *opened) Link(tree int, rel string, old bool) (string, error) {
	dir, err := d.above(tree, rel, old)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	return safepath.ReadLink(int(dir.Fd()), path.Base(rel))
}

func (d *opened) Type(tree int, rel string) (fs.FileMode, error) {
	dir, err := d.above(tree, rel, true)
	if errors.Is(err, unix.ELOOP) { // a link is on the way
		err = fs.ErrNotExist
	}
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	var st unix.Stat_t
	err = unix.Fstatat(int(dir.Fd()), path.Base(rel), &st, unix.AT_SYMLINK_NOFOLLOW)
	return files.Mode(uint32(st.Mode)).Type(), err
}

// above opens the directory that has a path.
func (d *opened) above(tree int, rel string, old bool) (*os.File, error) {
	return safepath.OpenBelow(d.dir(tree, old), path.Dir(rel), unix.O_DIRECTORY|safepath.SearchOnly)
}
