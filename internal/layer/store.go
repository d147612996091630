package layer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/safepath"
)

// recordVersion is the format that this package writes.
const recordVersion = 1

// StoreDir is the directory of all layers, in the state directory. It has a directory for each.
const StoreDir = "try"

const maxRecord = 16 << 20 // bytes; the arguments of a command are shorter

const (
	recordFile = "record" // in a layer, a Record as JSON
	seenFile   = "seen"   // in a layer that was frozen
)

var errNotFound = errors.New("no such layer")

// Record is what is stored about a layer when it is made. All but Session and Name may have any bytes.
type Record struct {
	Version int       // of the format; Make sets it
	Session string    // the id of the session that wrote the layer
	Name    string    // of the session, or ""
	Command []string  // what ran
	Dir     string    // its working directory
	Began   time.Time // when it was started
	Trees   []Tree    // the directories that it would have written to

	Protected []string // paths in the trees that programs outside run or trust, and that the command could write
	Denied    []string // patterns (package glob) of names that were denied to the command
}

// Tree is a directory of which a command sees the files, while what it writes goes to a layer.
type Tree struct {
	Path     string // canonical; "" if the layer's record is damaged
	Dev, Ino uint64 // as host.FileID
	Born     int64  // when it was made, in nanoseconds since 1970, or 0: another may get its number; Make sets it
}

// Layer is what one session wrote. Make, All and Find return one.
type Layer struct {
	Record

	Dir    string // the layer's own directory, without symbolic links
	Damage error  // why the record can't be read, or nil; Record then has what is known without it
}

// TreeDir returns the directory with the upper, work and lower directory of the tree with an index.
func (l *Layer) TreeDir(n int) string { return filepath.Join(l.Dir, strconv.Itoa(n)) }

// OpenUpper opens the directory with what the command wrote to the tree with an index.
func (l *Layer) OpenUpper(n int) (*os.File, error) {
	return safepath.OpenFile(filepath.Join(l.TreeDir(n), "upper"), os.O_RDONLY|unix.O_DIRECTORY, 0)
}

// Make makes a layer in a state directory such as ~/.local/state/zsbx. A layer that can't be made as a whole is
// removed again. The error is fs.ErrExist if the session has one.
func Make(state string, r Record) (*Layer, error) {
	if !isID(r.Session) {
		return nil, fmt.Errorf("a layer needs the id of a session, not %q", r.Session)
	}
	dir, err := makeStore(state)
	if err != nil {
		return nil, err
	}
	l := &Layer{Record: r, Dir: filepath.Join(dir, r.Session)}
	l.Version = recordVersion
	l.Trees = slices.Clone(r.Trees)
	var trees []*os.File
	for n := range l.Trees {
		tree, err := l.OpenTree(n)
		if err != nil {
			return nil, err
		}
		defer tree.Close()
		l.Trees[n].Born = born(tree)
		trees = append(trees, tree)
	}
	if err := os.Mkdir(l.Dir, 0o700); err != nil {
		return nil, err
	}
	err = l.save(recordFile, l.Record.withTexts(quoted), os.Link)
	for n, tree := range trees {
		if err == nil {
			err = makeTree(l.TreeDir(n), tree)
		}
	}
	if err != nil {
		return nil, errors.Join(err, l.Remove())
	}
	return l, nil
}

// makeTree makes the directories of a tree. The upper one has what the tree has: it is what the command sees.
func makeTree(dir string, tree *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(tree.Fd()), &st); err != nil {
		return &fs.PathError{Op: "stat", Path: tree.Name(), Err: err}
	}
	for _, name := range []string{"", "upper", "work", "lower"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return err
		}
	}
	upper, err := os.Open(filepath.Join(dir, "upper"))
	if err != nil {
		return err
	}
	defer upper.Close()
	_ = upper.Chown(int(st.Uid), int(st.Gid)) // of another user's tree the user can't make one
	if err := unix.Fchmod(int(upper.Fd()), uint32(st.Mode)&0o7777); err != nil {
		return &fs.PathError{Op: "chmod", Path: upper.Name(), Err: err}
	}
	if err := copyAttributes(tree, upper); err != nil {
		return fmt.Errorf("%s: extended attributes: %w", tree.Name(), err)
	}
	return markBeginning(filepath.Join(dir, "lower"))
}

// markBeginning gives a directory the status change time that began returns. Linux 6.13 and later give a
// file that changes after it was looked at a time of its own, and everything that changes later a later
// one. Older ones count in ticks of some milliseconds.
func markBeginning(dir string) error {
	if _, err := os.Lstat(dir); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// began returns when the command may have begun to look at a tree, by the kernel's clock for files.
func (l *Layer) began(n int) (int64, error) {
	var st unix.Stat_t
	name := filepath.Join(l.TreeDir(n), "lower")
	if err := unix.Lstat(name, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return st.Ctim.Nano(), nil
}

// ErrGone says that a tree is not there any more.
var ErrGone = errors.New("the directory has gone, or there is another one in its place")

// OpenTree opens a tree, if it is the one that the layer was made for. Its device number is not compared,
// since that may change when the machine restarts.
func (l *Layer) OpenTree(n int) (*os.File, error) {
	t := &l.Trees[n]
	if t.Path == "" {
		return nil, ErrGone
	}
	f, err := safepath.OpenFile(t.Path, os.O_RDONLY|unix.O_DIRECTORY, 0)
	if isGone(err) {
		return nil, &fs.PathError{Op: "open", Path: t.Path, Err: ErrGone}
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &st)
	if err == nil && (st.Ino != t.Ino || t.Born != 0 && t.Born != born(f)) {
		err = ErrGone
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: t.Path, Err: err}
	}
	return f, nil
}

// makeStore returns the directory of all layers, and makes it if it is missing.
func makeStore(state string) (string, error) {
	dir, err := store(state)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		if err := safepath.MakeDir(state, 0o700, true); err != nil {
			return "", err
		}
	}
	if err := os.Mkdir(filepath.Join(state, StoreDir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return store(state)
}

// store returns the directory of all layers. It must be the user's, and closed to others.
func store(state string) (string, error) {
	state, err := filepath.EvalSymlinks(state)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(state, StoreDir)
	if err := mine(state, 0o022); err != nil {
		return "", err
	}
	return dir, mine(dir, 0o077)
}

// mine returns an error for what is no directory, is another user's or has one of the permissions in not.
func mine(dir string, not fs.FileMode) error {
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	switch {
	case !st.IsDir():
		return fmt.Errorf("%s: not a directory", dir)
	case !safepath.OwnedBy(st, os.Geteuid()):
		return fmt.Errorf("%s: not yours: another user could change what you apply", dir)
	case st.Mode()&not != 0:
		return fmt.Errorf("%s: not yours alone: mode %04o lets others in (chmod go-rwx)", dir, st.Mode().Perm())
	}
	return nil
}

func isID(name string) bool {
	id, err := uuid.Parse(name)
	return err == nil && id.String() == name
}

// Save writes a file of the layer as JSON, whole or not at all, and does not return before the disk has it.
func (l *Layer) Save(name string, v any) error {
	err := l.save(name, v, os.Rename)
	if err != nil {
		return err
	}
	return l.sync()
}

// Delete removes a file that Save wrote, if it is there.
func (l *Layer) Delete(name string) error {
	err := os.Remove(filepath.Join(l.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(err, l.sync())
}

// Load reads into v what Save wrote. If that is nothing, v stays as it is.
func (l *Layer) Load(name string, v any) error {
	b, err := files.Read(filepath.Join(l.Dir, name), maxSeen)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}

// sync makes the disk have the names of the layer's files.
func (l *Layer) sync() error {
	f, err := os.Open(l.Dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// save writes a file of the layer as JSON, whole or not at all. put is os.Link for a file that must be new, and
// os.Rename for one that may be replaced.
func (l *Layer) save(name string, v any, put func(from, to string) error) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(l.Dir, name+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if name != recordFile && err == nil { // a start need not wait for the disk
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = put(f.Name(), filepath.Join(l.Dir, name))
	}
	_ = os.Remove(f.Name()) // a rename has moved it
	return err
}

// load reads the layer in a directory. One that never had anything in it is fs.ErrNotExist.
func load(dir string) (*Layer, error) {
	l := &Layer{Dir: dir}
	b, err := files.Read(filepath.Join(dir, recordFile), maxRecord)
	var r Record
	if err == nil {
		r, err = readRecord(b)
	}
	id := filepath.Base(dir)
	switch {
	case err == nil && r.Session != id:
		err = errors.New("it is not the record of this layer")
	case err == nil && r.Version != recordVersion:
		err = fmt.Errorf("its version is %d, this zsbx knows %d", r.Version, recordVersion)
	}
	if err == nil {
		l.Record = r
		return l, nil
	}
	for {
		st, found := os.Lstat(l.TreeDir(len(l.Trees)))
		if found != nil {
			break
		}
		l.Began = st.ModTime()
		l.Trees = append(l.Trees, Tree{})
	}
	if len(l.Trees) == 0 && errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	l.Session = id
	l.Damage = fmt.Errorf("the record of layer %s is damaged, so that it can't be applied: %w", id, err)
	return l, nil
}

// All returns all layers, the oldest first. One whose record is damaged is returned, too, with the error. A
// directory that can't be used is an error, since it may have layers.
func All(state string) ([]*Layer, error) {
	dir, err := store(state)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := files.List(dir, -1)
	errs := []error{err}
	var all []*Layer
	for _, e := range entries {
		if !isID(e.Name()) {
			continue
		}
		l, err := load(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is being made or removed
		}
		all = append(all, l)
		errs = append(errs, l.Damage)
	}
	slices.SortFunc(all, func(x, y *Layer) int {
		return cmp.Or(x.Began.Compare(y.Began), cmp.Compare(x.Session, y.Session))
	})
	return all, errors.Join(errs...)
}

// Find returns the layer that ref means: the id of its session, the unambiguous beginning of that, or a
// name, which means the last that had it. It is an error if there is none, or there are several.
func Find(state, ref string) (*Layer, error) {
	all, err := All(state)
	var named *Layer
	var hits []*Layer
	var ids []string
	for _, l := range all {
		switch {
		case ref == "":
		case l.Name == ref:
			named = l
		case strings.HasPrefix(l.Session, strings.ToLower(ref)):
			hits = append(hits, l)
			ids = append(ids, l.Session)
		}
	}
	switch {
	case named != nil:
		return named, nil
	case len(hits) == 1:
		return hits[0], nil
	case len(hits) > 1:
		return nil, fmt.Errorf("layer %.80q: %d layers match: %s", ref, len(hits), strings.Join(ids, ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("layer %.80q: %w that can be read: %w", ref, errNotFound, err)
	}
	return nil, fmt.Errorf("layer %.80q: %w", ref, errNotFound)
}
