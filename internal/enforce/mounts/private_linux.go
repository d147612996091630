package mounts

import (
	"io/fs"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/policy"
)

// The options of private file systems. Every user may make POSIX shared memory. Opening ptmx
// makes a new pseudo-terminal.
const (
	tmpfsShared   = "mode=1777"
	devptsPrivate = "newinstance,ptmxmode=0666,mode=620"
)

// private mounts an empty file system on a directory and adds a Landlock rule for it. The rule
// can't be made before the file system exists.
func (l *stepList) private(d PrivateDir, ruleset int) {
	trees := make([]result, len(d.Back))
	for i, b := range d.Back {
		fd := l.open(b.Path)
		l.check(fd, b.ID, b.Path)
		trees[i] = l.clone(fd, true)
		l.close(fd)
		if d.From == "" {
			continue
		}
		attr := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
		if b.Access&policy.Write == 0 {
			attr |= unix.MOUNT_ATTR_RDONLY
		}
		if b.Access&policy.Exec == 0 {
			attr |= unix.MOUNT_ATTR_NOEXEC
		}
		l.set(trees[i], true, attr)
	}
	m := Mount{Path: d.Path}
	switch d.Kind {
	case devpts:
		l.fileSystem(devpts, m, unix.MS_NOEXEC, devptsPrivate)
	case Proc:
		at := l.fileSystem(Proc, m, unix.MS_RDONLY|unix.MS_NODEV|unix.MS_NOEXEC, "")
		l.steps[at].Tag = TagProc
	case tmpfs:
		var outside unix.Statfs_t
		_ = unix.Statfs(d.Path, &outside) // the new one is noexec if the old one is
		options := tmpfsShared + ",size=" + strconv.Itoa(d.Size) + "%"
		l.fileSystem(tmpfs, m, unix.MS_NODEV|int(outside.Flags)&unix.ST_NOEXEC, options)
	default:
		// An earlier attempt to start may have made it.
		l.mayFail(l.call("making "+d.From, unix.SYS_MKDIRAT, atCWD, d.From, 0o700))
		from := l.open(d.From)
		tree := l.clone(from, false)
		l.close(from)
		l.attach(tree, l.open(d.Path), d.Path)
	}
	if d.Rights == 0 {
		return
	}
	fd := l.open(d.Path)
	l.rule(ruleset, fd, d.Rights)
	l.back(d, fd, trees)
	l.close(fd)
}

// rule adds a Landlock rule for the file that fd, which open returned, refers to.
func (l *stepList) rule(ruleset int, fd result, rights uint64) {
	rule := fork.Put(l.mem, landlock.PathBeneath{Rights: rights})
	l.steps[fd].Out = &rule.Fd
	l.tagged(TagSetup, "landlock_add_rule(2)", unix.SYS_LANDLOCK_ADD_RULE, ruleset, landlock.RulePathBeneath, rule, 0)
}

// back fills a new private directory, to which fd refers, with Made and Back. trees are the
// cloned mounts of d.Back. A mount point inside another mount of Back exists already.
func (l *stepList) back(d PrivateDir, fd result, trees []result) {
	first := result(len(l.steps))
	for _, b := range slices.Concat(d.Made, d.Back) {
		doing := "making " + b.Path
		below := b.Path[len(d.Path)+1:]
		for i, c := range below {
			if c == '/' {
				l.call(doing, unix.SYS_MKDIRAT, fd, below[:i], 0o700)
			}
		}
		switch {
		case b.Mode.IsDir():
			l.call(doing, unix.SYS_MKDIRAT, fd, below, 0o700)
		case b.Mode == fs.ModeSymlink:
			l.call(doing, unix.SYS_SYMLINKAT, b.To, fd, below)
		default:
			l.call(doing, unix.SYS_MKNODAT, fd, below, unix.S_IFREG|0o600, 0)
		}
	}
	// Some exist, for example from an earlier attempt. If one is missing, the next steps fail.
	l.mayFail(first)
	for i, b := range d.Back {
		l.attach(trees[i], l.openAt(atCWD, b.Path, b.Path), b.Path)
	}
}

// maxTerminal is the highest number of a terminal that keeps its name. Each lower number costs
// about 15 µs.
const maxTerminal = 255

// Terminal is the pseudo-terminal that the command has as descriptor 0, 1 or 2.
type Terminal struct {
	dir    string // /dev/pts
	number int
	tree   result // a cloned mount of it
}

func (t *Terminal) path() string { return t.dir + "/" + strconv.Itoa(t.number) }

// Terminal returns the first of the command's terminals that has a name, or nil.
func (mp *Plan) Terminal(files []*os.File) *Terminal {
	if mp == nil {
		return nil
	}
	i := slices.IndexFunc(mp.Private, func(d PrivateDir) bool { return d.Kind == devpts })
	if i < 0 {
		return nil
	}
	for n := range 3 {
		var st, named unix.Stat_t
		if unix.Fstat(fork.StandardFile(files, n), &st) != nil || !IsPseudoTerminal(&st) {
			continue
		}
		t := &Terminal{dir: mp.Private[i].Path, number: int(unix.Minor(st.Rdev))}
		if t.number > maxTerminal || unix.Lstat(t.path(), &named) != nil {
			continue
		}
		if named.Dev == st.Dev && named.Ino == st.Ino {
			return t
		}
	}
	return nil
}

// IsPseudoTerminal reports whether a file is the slave end of a pseudo-terminal
// (UNIX98_PTY_SLAVE_MAJOR).
func IsPseudoTerminal(st *unix.Stat_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && unix.Major(st.Rdev) == 136
}

// keepTerminal clones a terminal's mount before its directory is covered. If this or nameTerminal
// fails, only ttyname(3) finds no name.
func (l *stepList) keepTerminal(t *Terminal) {
	if t == nil {
		return
	}
	first := result(len(l.steps))
	fd := l.open(t.path())
	t.tree = l.clone(fd, false)
	l.close(fd)
	l.mayFail(first)
}

// nameTerminal makes a terminal appear under its number in the new /dev/pts, where ttyname(3) and
// variables such as SSH_TTY expect it. The mount needs a file there, and only opening new
// pseudo-terminals makes files. They are opened until one gets that number, and the keeper keeps
// that one open.
func (l *stepList) nameTerminal(t *Terminal) {
	if t == nil {
		return
	}
	first := result(len(l.steps))
	var masters []result
	const flags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC
	for range t.number + 1 {
		masters = append(masters, l.call("opening ptmx", unix.SYS_OPENAT, atCWD, t.dir+"/ptmx", flags))
	}
	l.steps[masters[t.number]].Hold = true
	for _, m := range masters[:t.number] {
		l.close(m)
	}
	l.attach(t.tree, l.open(t.path()), t.path())
	l.mayFail(first)
}

// mayFail allows the steps from one on to fail.
func (l *stepList) mayFail(from result) {
	for i := range l.steps[from:] {
		l.steps[int(from)+i].MayFail = true
	}
}
