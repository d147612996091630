package review

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/layer"
	"github.com/zsbx/zsbx/internal/safepath"
)

// whiteout begins the name that stands for a removed file in layers of container images.
const whiteout = ".wh."

// Tar writes a layer as an archive, also if its tree has gone: what is new or changed as it is, and what
// is removed as an empty file .wh.NAME. With several trees, the names begin with the tree's path. It
// returns the names of what it left out: what would be refused or can't be read, sockets, and files whose
// names mean a removal.
func Tar(w io.Writer, l *layer.Layer, changes []layer.Change) (left []string, err error) {
	d, err := open(l)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	a := &archive{
		opened: d, trees: l.Trees, out: tar.NewWriter(w),
		links: make(map[files.ID]string),
		gone:  make(map[key]bool),
	}
	for i := range changes {
		c := &changes[i]
		if err := a.add(c); err != nil {
			if !errors.Is(err, errLeftOut) && !errors.Is(err, fs.ErrPermission) {
				return nil, err
			}
			left = append(left, a.name(c))
		}
	}
	return left, a.out.Close()
}

// errLeftOut says that something can't be in an archive.
var errLeftOut = errors.New("it is left out")

// archive is an archive that is being written.
type archive struct {
	*opened
	trees []layer.Tree
	out   *tar.Writer
	links map[files.ID]string // the first name of files that have several
	gone  map[key]bool        // what is no directory any more
}

// name returns the name of a change in the archive.
func (a *archive) name(c *layer.Change) string {
	if len(a.trees) == 1 {
		return c.Path
	}
	return path.Join(strings.Trim(a.trees[c.Tree].Path, "/"), c.Path)
}

// add writes one change.
func (a *archive) add(c *layer.Change) error {
	if c.Op == layer.Remove || !c.Type.IsDir() {
		a.gone[key{c.Tree, c.Path}] = true
	}
	if a.gone[key{c.Tree, path.Dir(c.Path)}] {
		a.gone[key{c.Tree, c.Path}] = true
		return nil
	}
	base := path.Base(c.Path)
	if c.Refused != "" || strings.HasPrefix(base, whiteout) {
		return errLeftOut
	}
	if c.Op == layer.Remove {
		name := path.Join(path.Dir(a.name(c)), whiteout+base)
		return a.out.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg, Format: tar.FormatPAX})
	}
	above, err := a.above(c.Tree, c.Path, false)
	if err != nil {
		return err
	}
	defer above.Close()
	return a.entry(above, base, a.name(c))
}

// entry writes what is in a directory under a name.
func (a *archive) entry(above *os.File, base, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(int(above.Fd()), base, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &os.PathError{Op: "stat", Path: name, Err: err}
	}
	h := &tar.Header{
		Name: name, Mode: int64(st.Mode & 0o7777), Uid: int(st.Uid), Gid: int(st.Gid),
		ModTime: time.Unix(st.Mtim.Unix()), Format: tar.FormatPAX,
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		h.Typeflag = tar.TypeDir
		h.Name += "/"
	case unix.S_IFLNK:
		to, err := safepath.ReadLink(int(above.Fd()), base)
		if err != nil {
			return err
		}
		h.Typeflag = tar.TypeSymlink
		h.Linkname = to
	case unix.S_IFIFO:
		h.Typeflag = tar.TypeFifo
	case unix.S_IFREG:
		return a.file(above, base, h, &st)
	default:
		return errLeftOut
	}
	return a.out.WriteHeader(h)
}

// file writes a regular file, or a link to its first name.
func (a *archive) file(above *os.File, base string, h *tar.Header, st *unix.Stat_t) error {
	id := files.ID{Dev: uint64(st.Dev), Ino: st.Ino}
	if first := a.links[id]; first != "" {
		h.Typeflag = tar.TypeLink
		h.Linkname = first
		return a.out.WriteHeader(h)
	}
	if st.Nlink > 1 {
		a.links[id] = h.Name
	}
	f, err := safepath.OpenBelow(above, base, os.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return err
	}
	defer f.Close()
	h.Typeflag = tar.TypeReg
	h.Size = st.Size
	h.PAXRecords, err = attributes(above, base)
	if err != nil {
		return err
	}
	if err := a.out.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.CopyN(a.out, f, st.Size)
	return err
}

// attributes returns the user's extended attributes of a file as records of an archive.
func attributes(above *os.File, base string) (map[string]string, error) {
	all, err := layer.AttributesAt(int(above.Fd()), base)
	out := make(map[string]string)
	for name, value := range all {
		if strings.HasPrefix(name, "user.") && !strings.Contains(name, "=") {
			out["SCHILY.xattr."+name] = string(value)
		}
	}
	return out, err
}
