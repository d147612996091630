package answer

import (
	"io/fs"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
)

// view is what the command finds at a path.
type view struct {
	rights   uint64
	point    string        // the mount that the path is on
	mask     *mounts.Mount // that hides the path
	readOnly bool
	why      *mounts.Mount // the mount that makes it read-only; nil if no rule allows writing
}

// look returns the view of a path. It allocates nothing, since it is called for every call of a
// traced command.
func (w *World) look(p string) view {
	var c climb
	for at := p; ; at = above(at) {
		if e := w.entries[at]; e != nil {
			c.pass(at, e)
			if w.Mounts != nil || !e.private {
				c.rights |= e.rights
			}
		}
		if at == "/" {
			break
		}
	}
	v := view{rights: c.rights, point: c.point, mask: c.mask, why: c.protect, readOnly: c.readOnly}
	if c.noExec {
		v.rights &^= landlock.FSExecute
	}
	if w.Mounts == nil {
		return v
	}
	if v.mask != nil {
		v.why = v.mask
	}
	noRule := w.Mounts.Writable != nil && !c.writable
	v.readOnly = !c.private && (v.readOnly || v.why != nil || noRule)
	return v
}

// climb collects what the plan says about a path and about each directory above it, from the
// path upwards.
type climb struct {
	rights   uint64
	point    string        // the nearest mount point
	mask     *mounts.Mount // the highest mask
	protect  *mounts.Mount // the highest protection, without those above a private directory
	writable bool          // the path is in a tree that stays writable
	private  bool          // it is in a private directory, and none of the outside's paths there
	back     bool          // it is one of the outside's paths
	readOnly bool
	noExec   bool
}

// pass adds an entry, which is at or above what was added before.
func (c *climb) pass(at string, e *entry) {
	if e.point && c.point == "" {
		c.point = at
	}
	if e.writable {
		c.writable = true
	}
	if e.back {
		c.passBack(e)
	} else if e.readOnly {
		c.readOnly = true
	}
	if e.private && !e.readOnly && !c.back {
		c.private = true
	}
	if e.mount == nil {
		return
	}
	switch e.mount.Kind {
	case mounts.Mask:
		c.mask = e.mount
	case mounts.Protect:
		if !c.private {
			c.protect = e.mount
		}
	}
}

// passBack adds a path of the outside in a private directory. The nearest counts.
func (c *climb) passBack(e *entry) {
	if c.back {
		return
	}
	c.back = true
	c.noExec = e.noExec
	if e.readOnly {
		c.readOnly = true
	}
}

// above returns the directory of a clean absolute path.
func above(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "/"
}

// file answers for an act on one path.
func (w *World) file(a *Act) Answer {
	if w.foreignProcess(a) {
		return Answer{Verdict: Undecided, At: a.Path}
	}
	if ans, hidden := w.hidden(a, a.Path); hidden {
		return ans
	}
	if a.Reopen {
		outside := *w
		outside.Mounts = nil // the descriptor bypasses them
		w = &outside
	}
	switch a.Op {
	case Open:
		return w.open(a)
	case Exec:
		return w.need(a.Path, landlock.FSExecute|landlock.FSReadFile)
	case Make:
		if a.Missing { // else EEXIST
			return w.change(above(a.Path), makes(a.Mode))
		}
	case TempFile:
		return w.change(a.Path, opens(a))
	case Remove:
		rights := removes(a.Mode)
		if a.Missing {
			rights = 0 // ENOENT
		}
		ans := w.change(above(a.Path), rights)
		if ans.Verdict == Refused {
			return ans
		}
		return w.busy(a.Path)
	case Truncate:
		if w.filterTruncates() {
			return refused(Seccomp, "EACCES", a.Path)
		}
		if a.Mode.IsRegular() { // else EINVAL or EISDIR
			return w.change(a.Path, landlock.FSTruncate)
		}
	case Metadata:
		return w.change(a.Path, 0)
	case Ioctl:
		if a.Mode&fs.ModeDevice != 0 {
			return w.need(a.Path, landlock.FSIoctlDev)
		}
	}
	return allowed()
}

// foreignProcess reports whether a path is in another process's /proc directory, where the
// kernel checks as for ptrace(2).
func (w *World) foreignProcess(a *Act) bool {
	if a.Inside {
		return false
	}
	rest, ok := strings.CutPrefix(a.Path, "/proc/")
	name, _, below := strings.Cut(rest, "/")
	return ok && below && name != "" && name[0] >= '0' && name[0] <= '9'
}

// hidden answers for a path at or below a mask. It returns false if there is none, or if the
// directory above the path decides.
func (w *World) hidden(a *Act, p string) (_ Answer, hidden bool) {
	mask := w.look(p).mask
	switch {
	case mask == nil:
		return Answer{}, false
	case mask.Path == p:
		return w.masked(a, mask)
	}
	return w.behind(a, p, mask)
}

// masked answers for the path of a mask. A masked directory is empty, and a masked file is a
// device that can't be opened.
func (w *World) masked(a *Act, mask *mounts.Mount) (_ Answer, hidden bool) {
	if a.To != "" {
		return Answer{}, false
	}
	errno := "EACCES"
	switch a.Op {
	case Remove:
		return Answer{}, false
	case Make:
		return allowed(), true // EEXIST
	case Metadata, TempFile:
		errno = "EROFS"
	case Open:
		if w.Override && mask.Dir {
			errno = "" // an empty list
		}
	}
	return refusedByMask(errno, mask.Path, mask), true
}

// behind answers for a path below a mask. Without CAP_DAC_OVERRIDE the command can't search the
// directory. With it, it finds nothing there.
func (w *World) behind(a *Act, p string, mask *mounts.Mount) (_ Answer, hidden bool) {
	if !w.Override {
		return refusedByMask("EACCES", p, mask), true
	}
	if above(p) != mask.Path {
		return refusedByMask("ENOENT", p, mask), true
	}
	if a.To != "" && (a.Op != Link || p == a.To) {
		return Answer{}, false
	}
	if a.Op == Make || a.Op == Remove || a.Flags&Creat != 0 {
		return refusedByMask("EROFS", p, mask), true
	}
	return refusedByMask("ENOENT", p, mask), true
}

func refusedByMask(errno, at string, mask *mounts.Mount) Answer {
	ans := refused(Mounts, errno, at)
	ans.Mount = mask
	return ans
}

// open answers for open(2). A new file needs rights at its directory and at its own path.
func (w *World) open(a *Act) Answer {
	if a.Missing && a.Flags&Creat != 0 {
		ans := w.change(above(a.Path), landlock.FSMakeReg)
		if ans.Verdict == Refused {
			return ans
		}
		return w.need(a.Path, opens(a))
	}
	if a.Mode.IsDir() && a.Flags&Write != 0 { // EISDIR: the question is about changing what is in it
		return w.change(a.Path, landlock.FSMakeReg|landlock.FSRemoveFile)
	}
	onlyTruncates := a.Flags&(Trunc|Write) == Trunc
	if onlyTruncates && w.filterTruncates() {
		return refused(Seccomp, "EACCES", a.Path)
	}
	need := opens(a)
	if !a.Mode.IsRegular() || a.Flags&(Trunc|Write) == 0 {
		return w.need(a.Path, need)
	}
	if a.Flags&Trunc != 0 {
		need |= landlock.FSTruncate
	}
	return w.change(a.Path, need)
}

// filterTruncates reports whether the filter refuses to truncate, since Landlock can't before
// Linux 6.2.
func (w *World) filterTruncates() bool {
	return w.Landlock != nil && w.handled&landlock.FSTruncate == 0 && w.Filter != nil
}

// opens returns the rights that an access mode needs.
func opens(a *Act) (need uint64) {
	if a.Mode.IsDir() && a.Op == Open {
		return landlock.FSReadDir
	}
	if a.Flags&Read != 0 {
		need = landlock.FSReadFile
	}
	if a.Flags&Write != 0 {
		need |= landlock.FSWriteFile
	}
	return need
}

// need answers for rights at a path.
func (w *World) need(p string, rights uint64) Answer {
	ans := refused(Landlock, "EACCES", p)
	ans.Missing = w.handled & rights &^ w.look(p).rights
	if ans.Missing == 0 {
		return allowed()
	}
	return ans
}

// change answers for a change at a path. A read-only mount refuses before Landlock does.
func (w *World) change(p string, rights uint64) Answer {
	ans := w.need(p, rights)
	v := w.look(p)
	if !v.readOnly {
		return ans
	}
	return Answer{Verdict: Refused, By: Mounts, Errno: "EROFS", At: p, Missing: ans.Missing, Mount: v.why}
}

// busy answers for removing or renaming a path, which fails if something is mounted on it.
func (w *World) busy(p string) Answer {
	if e := w.entries[p]; e != nil && e.point {
		return Answer{Verdict: Refused, By: Mounts, Errno: "EBUSY", At: p, Mount: e.mount}
	}
	return allowed()
}

// making has the right to make each type of file. The first match counts.
var making = []struct {
	mode  fs.FileMode
	right uint64
}{
	{fs.ModeDir, landlock.FSMakeDir},
	{fs.ModeSymlink, landlock.FSMakeSym},
	{fs.ModeNamedPipe, landlock.FSMakeFifo},
	{fs.ModeSocket, landlock.FSMakeSock},
	{fs.ModeCharDevice, landlock.FSMakeChar},
	{fs.ModeDevice, landlock.FSMakeBlock},
}

// makes returns the right to make a file of a type.
func makes(mode fs.FileMode) uint64 {
	for _, x := range making {
		if mode&x.mode != 0 {
			return x.right
		}
	}
	return landlock.FSMakeReg
}

// removes returns the right to remove a file of a type.
func removes(mode fs.FileMode) uint64 {
	if mode.IsDir() {
		return landlock.FSRemoveDir
	}
	return landlock.FSRemoveFile
}
