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

// look collects the view of a path from the path upwards. It allocates nothing, since it is
// called for every call of a watched command.
func (w *World) look(p string) view {
	v := view{}
	writable := false
	private := false
	back := false
	noExec := false
	for at := p; ; at = above(at) {
		if x := w.places[at]; x != nil {
			if !x.private || w.Mounts != nil {
				v.rights |= x.rights
			}
			if x.point && v.point == "" {
				v.point = at
			}
			if x.back && !back {
				back = true
				noExec = x.noExec
				v.readOnly = v.readOnly || x.readOnly
			}
			writable = writable || x.writable
			private = private || x.private && !x.readOnly && !back
			switch {
			case x.mount != nil && x.mount.Kind == mounts.Mask:
				v.mask = x.mount
			case x.mount != nil && x.mount.Kind == mounts.Protect && !private:
				v.why = x.mount
			}
			v.readOnly = v.readOnly || x.readOnly && !x.back
		}
		if at == "/" {
			break
		}
	}
	if noExec {
		v.rights &^= landlock.FSExecute
	}
	if mp := w.Mounts; mp != nil {
		if v.mask != nil {
			v.why = v.mask
		}
		v.readOnly = !private && (v.readOnly || v.why != nil || mp.Writable != nil && !writable)
	}
	return v
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
		if ans := w.change(above(a.Path), rights); ans.Verdict == Refused {
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
	rest, ok := strings.CutPrefix(a.Path, "/proc/")
	return ok && !a.Inside && rest != "" && rest[0] >= '0' && rest[0] <= '9' && strings.IndexByte(rest, '/') > 0
}

// hidden answers for a path at or below a mask. A masked directory is empty, and a masked file
// is a device that can't be opened. Without CAP_DAC_OVERRIDE the command can't search the
// directory. With it, it finds nothing there.
func (w *World) hidden(a *Act, p string) (Answer, bool) {
	v := w.look(p)
	if v.mask == nil {
		return Answer{}, false
	}
	is := p == v.mask.Path
	in := above(p) == v.mask.Path
	two := a.To != ""
	errno := "EACCES"
	switch {
	case is && (two || a.Op == Remove), two && in && w.Override && (a.Op != Link || p == a.To):
		return Answer{}, false // the directory above counts
	case is && a.Op == Make:
		return allowed(), true // EEXIST
	case is && (a.Op == Metadata || a.Op == TempFile), in && w.Override && (a.Op == Make || a.Op == Remove || a.Flags&Creat != 0):
		errno = "EROFS"
	case is && w.Override && v.mask.Dir && a.Op == Open:
		errno = "" // an empty list
	case !is && w.Override:
		errno = "ENOENT"
	}
	return Answer{Verdict: Refused, By: Mounts, Errno: errno, At: p, Mount: v.mask}, true
}

// open answers for open(2). A new file needs rights at its directory, an existing one at its
// own path.
func (w *World) open(a *Act) Answer {
	need := opens(a)
	regular := a.Mode.IsRegular()
	switch {
	case a.Missing && a.Flags&Creat != 0:
		if ans := w.change(above(a.Path), landlock.FSMakeReg); ans.Verdict == Refused {
			return ans
		}
	case a.Mode.IsDir() && a.Flags&Write != 0: // it would be EISDIR: the question means changing what is in it
		return w.change(a.Path, landlock.FSMakeReg|landlock.FSRemoveFile)
	case a.Flags&(Trunc|Write) == Trunc && w.filterTruncates():
		return refused(Seccomp, "EACCES", a.Path)
	case regular && a.Flags&Trunc != 0:
		return w.change(a.Path, need|landlock.FSTruncate)
	case regular && a.Flags&Write != 0:
		return w.change(a.Path, need)
	}
	return w.need(a.Path, need)
}

// filterTruncates reports whether the filter refuses to truncate, since Landlock can't before
// Linux 6.2.
func (w *World) filterTruncates() bool {
	return w.Landlock != nil && w.handled&landlock.FSTruncate == 0 && w.Filter != nil
}

// opens returns the rights that an access mode needs.
func opens(a *Act) (need uint64) {
	switch {
	case a.Mode.IsDir() && a.Op == Open:
		return landlock.FSReadDir
	case a.Flags&Read != 0:
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
	if v := w.look(p); v.readOnly {
		return Answer{Verdict: Refused, By: Mounts, Errno: "EROFS", At: p, Missing: ans.Missing, Mount: v.why}
	}
	return ans
}

// busy answers for removing or renaming a path, which fails if something is mounted on it.
func (w *World) busy(p string) Answer {
	if x := w.places[p]; x != nil && x.point {
		return Answer{Verdict: Refused, By: Mounts, Errno: "EBUSY", At: p, Mount: x.mount}
	}
	return allowed()
}

// making has the right to make each type of file. The first match counts.
var making = []struct {
	mode  fs.FileMode
	right uint64
}{
	{fs.ModeDir, landlock.FSMakeDir}, {fs.ModeSymlink, landlock.FSMakeSym}, {fs.ModeNamedPipe, landlock.FSMakeFifo},
	{fs.ModeSocket, landlock.FSMakeSock}, {fs.ModeCharDevice, landlock.FSMakeChar}, {fs.ModeDevice, landlock.FSMakeBlock},
}

// makes returns the right to make a file of a type. removes returns the right to remove one.
func makes(mode fs.FileMode) uint64 {
	for _, x := range making {
		if mode&x.mode != 0 {
			return x.right
		}
	}
	return landlock.FSMakeReg
}

func removes(mode fs.FileMode) uint64 {
	if mode.IsDir() {
		return landlock.FSRemoveDir
	}
	return landlock.FSRemoveFile
}
