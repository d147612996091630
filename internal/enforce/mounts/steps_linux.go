package mounts

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
)

// This file makes the namespace. Steps writes the whole list of system calls as data before the
// fork, and the keeper makes the calls before any Landlock domain. The order is: enter the
// namespaces, make all mounts read-only, mount the writable paths on themselves, cover denied
// and protected paths, make private directories (private_linux.go). A step can use the result
// of an earlier one, such as a descriptor, by its distance. If a setup step fails, the machine
// allows no namespace (Plan.Refused), and the start is planned again without one.

// atCWD is AT_FDCWD as an argument of a system call.
const atCWD = ^uintptr(99)

// tmpfsEmpty has the options of the file system that hides directories: mode 0 and no space.
const tmpfsEmpty = "mode=000,size=4k,nr_inodes=1"

// tmpfsCopies has the options of the file system for copies.
const tmpfsCopies = "mode=755,size=4m,nr_inodes=64"

// maskAttr makes a mount unusable: nobody can open a device on it (MOUNT_ATTR_NODEV), and
// nothing can be changed or executed.
const maskAttr = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC

// stepList builds the system calls that make a namespace. Steps refer to results by distance,
// so that the list can be copied.
type stepList struct {
	mem      *fork.Memory
	steps    []fork.Step
	overlays []Overlay // those that are mounted by now
	merged   []result  // their mounts, which stay open until all is mounted
}

// call adds a step and returns its index. In args, numbers and pointers are used as they are. A
// result stands for what that step returned.
func (l *stepList) call(name string, nr uintptr, args ...any) result {
	s := fork.Step{Name: name, Nr: nr}
	for i, a := range args {
		switch a := a.(type) {
		case int:
			s.Args[i] = uintptr(a)
		case uintptr:
			s.Args[i] = a
		case result:
			s.Back[i] = uint32(len(l.steps) - int(a))
		case string:
			s.Args[i] = uintptr(unsafe.Pointer(l.mem.Text(a)))
		case *unix.MountAttr:
			s.Args[i] = uintptr(unsafe.Pointer(fork.Put(l.mem, *a)))
		case *landlock.PathBeneath: // it is already in the steps' memory
			s.Args[i] = uintptr(unsafe.Pointer(a))
		case *unix.OpenHow:
			s.Args[i] = uintptr(unsafe.Pointer(fork.Put(l.mem, *a)))
		}
	}
	l.steps = append(l.steps, s)
	return result(len(l.steps) - 1)
}

// result is the index of a step in the list, for use as an argument.
type result int

func (l *stepList) tagged(tag fork.Tag, name string, nr uintptr, args ...any) result {
	at := l.call(name, nr, args...)
	l.steps[at].Tag = tag
	return at
}

// StepOptions says for whom Steps makes a namespace.
type StepOptions struct {
	UID, GID int
	Ruleset  int                 // the descriptor of Landlock's rules
	Rules    []landlock.PathRule // all; those in overlays are added
	Terminal *Terminal           // nil for none
}

// Steps adds the system calls that make the namespace and move the calling process into it. They
// also add rules for private directories and for overlays to the ruleset.
func (mp *Plan) Steps(steps []fork.Step, m *fork.Memory, o StepOptions) []fork.Step {
	l := &stepList{mem: m, steps: slices.Grow(steps, 96)} // about 70 by default
	mp.enter(l, o.UID, o.GID)
	if mp.IPC {
		l.tagged(TagIPC, "unshare(2)", unix.SYS_UNSHARE, unix.CLONE_NEWIPC)
	}
	l.keepTerminal(o.Terminal)
	var clones []result
	for _, w := range mp.Writable {
		at := l.open(w)
		clones = append(clones, l.writable(mp.overlayOn(w), at))
		l.close(at)
	}
	temp := l.keepTemp(mp)
	if mp.Writable != nil {
		l.setAttr(atCWD, "/", unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY)
	}
	var merged []result // in the order of mp.Overlays
	for i, w := range mp.Writable {
		at := l.open(w)
		overlay := mp.overlayOn(w)
		if overlay == nil {
			l.attach(clones[i], at, w)
			continue
		}
		l.check(at, overlay.ID, w)
		l.move(clones[i], at, w)
		l.close(at)
		merged = append(merged, clones[i])
	}
	l.overlays = mp.Overlays
	l.merged = merged
	l.mountTemp(mp, temp)
	l.rules(o.Rules, o.Ruleset)
	if len(mp.SSH) > 0 {
		l.copies(SSHDir, mp.SSH)
	}
	firstDir := ""
	for _, m := range mp.Mounts {
		if m.Kind == Mask && m.Dir && firstDir == "" {
			firstDir = m.Path
			l.fileSystem(tmpfs, m, unix.MS_RDONLY|unix.MS_NOEXEC|unix.MS_NODEV, tmpfsEmpty)
			continue
		}
		l.mount(m, firstDir)
	}
	for _, d := range mp.Private {
		l.private(d, o.Ruleset)
	}
	for _, fd := range l.merged {
		l.close(fd)
	}
	l.nameTerminal(o.Terminal)
	return l.steps
}

// Clone returns the flags for fork.Command.Namespaces. A process can't move itself into a PID
// namespace.
func (mp *Plan) Clone() (flags uintptr) {
	if mp != nil && mp.Pids {
		flags = unix.CLONE_NEWPID
		if mp.UserNS {
			flags |= unix.CLONE_NEWUSER
		}
	}
	return flags
}

// enter makes the namespaces. Without CAP_SYS_ADMIN a user namespace is needed, in which the
// user keeps their ids (user_namespaces(7)). Its mount namespace does not propagate mounts to
// the caller's. Root's does, unless / is made a slave.
func (mp *Plan) enter(l *stepList, uid, gid int) {
	if !mp.UserNS {
		l.tagged(TagUnshare, "unshare(2)", unix.SYS_UNSHARE, unix.CLONE_NEWNS)
		l.tagged(TagSetup, "mount(2) of / as a slave", unix.SYS_MOUNT, 0, "/", 0, unix.MS_REC|unix.MS_SLAVE, 0)
		return
	}
	// The files below belong to root while the process is not dumpable (proc_pid(5)). The
	// keeper and execve(2) set this again later.
	l.tagged(TagSetup, "prctl(PR_SET_DUMPABLE)", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)
	// The flags of clone(2) may have made the user namespace already.
	flags := (unix.CLONE_NEWUSER | unix.CLONE_NEWNS) &^ mp.Clone()
	l.tagged(TagUnshare, "unshare(2)", unix.SYS_UNSHARE, flags)
	for _, f := range []struct{ name, text string }{
		{"/proc/self/setgroups", "deny"},
		{"/proc/self/uid_map", fmt.Sprintf("%d %d 1", uid, uid)},
		{"/proc/self/gid_map", fmt.Sprintf("%d %d 1", gid, gid)},
	} {
		fd := l.tagged(TagSetup, "opening "+f.name, unix.SYS_OPENAT, atCWD, f.name, unix.O_WRONLY|unix.O_CLOEXEC)
		l.tagged(TagSetup, "writing "+f.name, unix.SYS_WRITE, fd, f.text, len(f.text))
		l.close(fd)
	}
}

func (l *stepList) close(fd result) { l.call("close(2)", unix.SYS_CLOSE, fd) }

// open opens a path with O_PATH without following any link in it. What is in an overlay is opened from
// there: if directories outside are exchanged meanwhile, their paths lead elsewhere.
func (l *stepList) open(path string) result {
	if i := overlayOf(l.overlays, path); i >= 0 {
		below := "." + path[len(l.overlays[i].Path):]
		return l.openAt(l.merged[i], below, path)
	}
	return l.openAt(atCWD, path, path)
}

// openAt opens a path relative to a directory. name is for messages.
func (l *stepList) openAt(dir any, path, name string) result {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	return l.tagged(TagOpen, name, unix.SYS_OPENAT2, dir, path, how, int(unsafe.Sizeof(*how)))
}

// clone makes a detached mount of the file that fd refers to, with the mounts below it if
// recursive.
func (l *stepList) clone(fd result, recursive bool) result {
	flags := unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	return l.tagged(TagSetup, "open_tree(2)", unix.SYS_OPEN_TREE, fd, "", flags)
}

// attach mounts a clone on the file that target refers to, and closes both.
func (l *stepList) attach(tree, target result, path string) {
	l.move(tree, target, path)
	l.close(tree)
	l.close(target)
}

// move is attach that leaves both open.
func (l *stepList) move(tree, target result, path string) {
	l.tagged(TagCover, "move_mount(2) onto "+path, unix.SYS_MOVE_MOUNT, tree, "", target, "",
		unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// set changes the attributes of a clone or of another mount that fd refers to.
func (l *stepList) set(fd result, recursive bool, attr uint64) {
	flags := unix.AT_EMPTY_PATH
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	l.setAttr(fd, "", flags, attr)
}

func (l *stepList) setAttr(dir any, path string, flags int, attr uint64) {
	l.tagged(TagSetup, "mount_setattr(2) of "+path, unix.SYS_MOUNT_SETATTR, dir, path, flags,
		&unix.MountAttr{Attr_set: attr}, int(unsafe.Sizeof(unix.MountAttr{})))
}

// copies mounts a file system with copies on a directory.
func (l *stepList) copies(path string, files []copied) {
	l.fileSystem(tmpfs, Mount{Path: path}, unix.MS_NOEXEC|unix.MS_NODEV, tmpfsCopies)
	dir := l.open(path)
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC
	for _, f := range files {
		fd := l.tagged(TagSetup, "copying "+f.Name, unix.SYS_OPENAT, dir, f.Name, flags, 0o644)
		l.tagged(TagSetup, "copying "+f.Name, unix.SYS_WRITE, fd, f.Text, len(f.Text))
		l.close(fd)
	}
	l.set(dir, false, unix.MOUNT_ATTR_RDONLY)
	l.close(dir)
}

// fileSystem mounts a new file system on a directory. mount(2) takes no descriptor, so the
// process enters the directory first. It returns the step of mount(2).
func (l *stepList) fileSystem(kind string, m Mount, flags int, options string) result {
	fd := l.open(m.Path)
	l.check(fd, m.ID, m.Path)
	l.tagged(TagOpen, m.Path, unix.SYS_FCHDIR, fd)
	mounted := l.tagged(TagCover, "mount(2) of a "+kind, unix.SYS_MOUNT,
		"none", ".", kind, flags|unix.MS_NOSUID, options)
	l.close(fd)
	return mounted
}

// check makes the start fail if a path does not lead where it did when the mounts were planned.
// If directories were exchanged since, the cover would be on another file, and the intended one
// would be open under another name. Once mounted, a cover stays with its file even if that is
// moved.
func (l *stepList) check(fd result, id host.FileID, path string) {
	if id == (host.FileID{}) || host.Within(path, "/proc") { // procfs changes the inode numbers of some files
		return
	}
	var ignore [2]uint64
	if i := overlayOf(l.overlays, path); i >= 0 {
		if path == l.overlays[i].Path {
			return // it was checked before, and the overlay's own descriptor refers to it
		}
		ignore = overlayNumbers
	}
	st := fork.Put(l.mem, unix.Stat_t{})
	at := l.tagged(TagCheck, path, unix.SYS_FSTAT, fd, uintptr(unsafe.Pointer(st)))
	l.steps[at].Same = fork.Put(l.mem, fork.Same{
		Got:    (*[2]uint64)(unsafe.Pointer(st)),
		Want:   [2]uint64{id.Dev, id.Ino},
		Ignore: ignore,
	})
}

// mount makes one of the plan's mounts. firstDir is a directory that is already masked; its
// mount is cloned for others.
func (l *stepList) mount(m Mount, firstDir string) {
	target := l.open(m.Path)
	l.check(target, m.ID, m.Path)
	from := target
	switch {
	case m.Kind == Mask && m.Dir:
		from = l.open(firstDir)
	case m.Kind == Mask:
		from = l.open("/dev/null")
	}
	tree := l.clone(from, m.Kind != Mask)
	if from != target {
		l.close(from)
	}
	switch {
	case m.Kind == Mask && !m.Dir:
		l.set(tree, false, maskAttr)
	case m.Kind == Protect:
		l.set(tree, true, unix.MOUNT_ATTR_RDONLY)
	}
	l.attach(tree, target, m.Path)
}
