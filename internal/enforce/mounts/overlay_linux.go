package mounts

import (
	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
)

// The directories of a tree's layer. Overlay options have relative names: a comma in a path would need
// escapes, which kernels read differently.
const (
	overlayUpper = "upper" // what the command writes
	overlayWork  = "work"  // for the kernel
	overlayLower = "lower" // empty: the tree is mounted here while the overlay is made
)

// noFollow is ST_NOSYMFOLLOW (statfs(2)), which package unix does not have.
const noFollow = 0x2000

// overlayNumbers are the bits in the numbers of an overlay's file that are not those of the file below:
// the device, and the bit by which the kernel tells two file systems apart (xino). As long as the file
// is open, the overlay does not look up again which file is below.
var overlayNumbers = [2]uint64{^uint64(0), 1 << 63}

// overlayOn returns the overlay on a tree, or nil.
func (mp *Plan) overlayOn(tree string) *Overlay {
	for i := range mp.Overlays {
		if mp.Overlays[i].Path == tree {
			return &mp.Overlays[i]
		}
	}
	return nil
}

// writable makes the mount that a writable tree gets: a clone of the tree to which at refers, or an
// overlay.
func (l *stepList) writable(o *Overlay, at result) result {
	if o == nil {
		return l.clone(at, true)
	}
	l.check(at, o.ID, o.Path)
	return l.overlay(o, at)
}

// overlay makes an overlay that is not mounted yet, and returns the descriptor of the mount. tree
// refers to the directory below it. All layers are on mounts that only this namespace has.
func (l *stepList) overlay(o *Overlay, tree result) result {
	below := l.clone(tree, false)
	dir := l.open(o.Dir)
	l.tagged(TagOverlay, "fchdir(2)", unix.SYS_FCHDIR, dir)
	l.close(dir)
	l.attach(below, l.open(o.Dir+"/"+overlayLower), o.Path)
	doing := "an overlay on " + o.Path
	// Where the state's file system lacks attributes the kernel makes an overlay in which no directory of the tree
	// can be removed or made anew (EIO).
	l.tagged(TagOverlay, doing+": setxattr(2)", unix.SYS_SETXATTR, overlayWork, "user.zsbx", "", 0, 0)
	fs := l.tagged(TagOverlay, doing+": fsopen(2)", unix.SYS_FSOPEN, "overlay", unix.FSOPEN_CLOEXEC)
	options := [][2]string{
		{"lowerdir", overlayLower},
		{"upperdir", overlayUpper},
		{"workdir", overlayWork},
		{"index", "off"}, // it would tie the layer to file handles
	}
	var layer unix.Stat_t
	if unix.Stat(o.Dir, &layer) != nil || layer.Dev != o.ID.Dev {
		options = append(options, [2]string{"xino", "on"}) // directories keep their inode numbers, which are checked
	}
	for _, option := range options {
		l.tagged(TagOverlay, doing+": fsconfig(2) of "+option[0], unix.SYS_FSCONFIG, fs,
			unix.FSCONFIG_SET_STRING, option[0], option[1], 0)
	}
	// With it the overlay keeps its notes where an ordinary user may write them, and does not
	// redirect directories: a reader of the layer need not trust any path in it.
	l.tagged(TagOverlay, doing+": fsconfig(2) of userxattr", unix.SYS_FSCONFIG, fs,
		unix.FSCONFIG_SET_FLAG, "userxattr", 0, 0)
	l.tagged(TagOverlay, doing, unix.SYS_FSCONFIG, fs, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	var outside unix.Statfs_t
	_ = unix.Statfs(o.Path, &outside) // the overlay has the tree's limits
	attr := unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	if outside.Flags&unix.ST_NOEXEC != 0 {
		attr |= unix.MOUNT_ATTR_NOEXEC
	}
	if outside.Flags&noFollow != 0 {
		attr |= unix.MOUNT_ATTR_NOSYMFOLLOW
	}
	merged := l.tagged(TagOverlay, doing+": fsmount(2)", unix.SYS_FSMOUNT, fs, unix.FSMOUNT_CLOEXEC, attr)
	l.close(fs)
	l.tagged(TagOverlay, doing+": umount2(2)", unix.SYS_UMOUNT2, overlayLower, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	return merged
}

// keepTemp clones the temporary directory's mount before an overlay covers it.
func (l *stepList) keepTemp(mp *Plan) (tree result) {
	if mp.Temp.Path == "" {
		return 0
	}
	fd := l.open(mp.Temp.Path)
	l.check(fd, mp.Temp.ID, mp.Temp.Path)
	tree = l.clone(fd, true)
	l.close(fd)
	return tree
}

// mountTemp mounts the temporary directory over the one in the overlay: what is in it goes when the
// session ends, and does not belong in a layer.
func (l *stepList) mountTemp(mp *Plan, tree result) {
	if mp.Temp.Path == "" {
		return
	}
	at := l.open(mp.Temp.Path)
	l.check(at, mp.Temp.ID, mp.Temp.Path)
	l.attach(tree, at, mp.Temp.Path)
}

// rules adds Landlock's rules for what is in overlays. A rule for a file below an overlay would not
// hold for the file that the command sees.
func (l *stepList) rules(rules []landlock.PathRule, ruleset int) {
	for _, r := range rules {
		if !r.Overlay {
			continue
		}
		first := result(len(l.steps))
		fd := l.open(r.Path)
		if !r.Part {
			l.check(fd, r.ID, r.Path)
		}
		l.rule(ruleset, fd, r.Rights)
		l.close(fd)
		if r.Part {
			l.mayFail(first)
		}
	}
}
