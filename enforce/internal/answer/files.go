package answer

import (
	"io/fs"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
)

// view is what the command has at a path.
type view struct {
	rights   uint64
	point    string        // the mount that the path lies on
	mask     *mounts.Mount // that hides it
	readOnly bool
	why      *mounts.Mount // it is read-only; nil for want of a rule
}

// look goes up from a path. It makes no garbage: it is asked about every call
// of a command that is watched.
func (w *World) look(p string) view {
	v := view{}
	writable, private, back, noExec := false, false, false, false
	for at := p; ; at = above(at) {
		if x := w.places[at]; x != nil {
			v.rights |= x.rights
			if x.point && v.point == "" {
				v.point = at
			}
			if x.back && !back {
				back, noExec = true, x.noExec
				v.readOnly = v.readOnly || x.readOnly
			}
			writable, private = writable || x.writable, private || x.private && !back
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

// above is the directory of a clean absolute path.
func above(p string) string {
	if i := strings.LastIndexByte(p, '/'); i > 0 {
		return p[:i]
	}
	return "/"
}

// onPoint reports whether something is mounted on the path itself, which keeps it
// from being removed and renamed.
func (w *World) onPoint(p string) *place {
	if x := w.places[p]; x != nil && x.point {
		return x
	}
	return nil
}

func (w *World) file(a *Act) Answer {
	if w.foreignProcess(a) {
		return Answer{Verdict: Undecided, At: a.Path}
	}
	if ans, own := w.private(a); own {
		return ans
	}
	switch a.Op {
	case Rename, Exchange, Link:
		return w.move(a)
	}
	if ans, hidden := w.hidden(a, a.Path); hidden {
		return ans
	}
	switch a.Op {
	case Open:
		return w.open(a)
	case Exec:
		return w.need(a.Path, landlock.FSExecute|landlock.FSReadFile)
	case Make:
		if !a.Missing {
			return allowed() // EEXIST
		}
		return w.change(above(a.Path), makes(a.Mode))
	case TempFile:
		return w.change(a.Path, opens(a))
	case Remove:
		if ans := w.change(above(a.Path), removes(a.Mode)); ans.Verdict == Refused && (ans.Errno != "EACCES" || !a.Missing) {
			return ans
		}
		if x := w.onPoint(a.Path); x != nil {
			return w.busy(a.Path, x)
		}
	case Truncate:
		return w.truncate(a)
	case Metadata:
		if v := w.look(a.Path); v.readOnly {
			return erofs(a.Path, v)
		}
	case Ioctl:
		if a.Mode&fs.ModeDevice != 0 {
			return w.need(a.Path, landlock.FSIoctlDev)
		}
	}
	return allowed()
}

// foreignProcess reports whether a path leads into another process, where the
// kernel asks as it does for ptrace(2).
func (w *World) foreignProcess(a *Act) bool {
	rest, ok := strings.CutPrefix(a.Path, "/proc/")
	return ok && !a.Inside && rest != "" && rest[0] >= '0' && rest[0] <= '9' && strings.IndexByte(rest, '/') > 0
}

// private answers for what lies outside where the command has a directory of its own:
// it is not there. What is made there is the command's own.
func (w *World) private(a *Act) (Answer, bool) {
	own := w.Mounts.PrivateIn(a.Path)
	if own == "" || own == a.Path || a.Op == Make || a.Op == Open && a.Flags&Creat != 0 {
		return Answer{}, false
	}
	ans := refused(Mounts, "ENOENT", a.Path)
	ans.Private = own
	return ans, true
}

// hidden answers for what a mask is over. There is no telling what is there: a
// directory is empty, a file a device that can't be opened.
func (w *World) hidden(a *Act, p string) (Answer, bool) {
	v := w.look(p)
	if v.mask == nil {
		return Answer{}, false
	}
	errno := "EACCES"
	switch {
	case p == v.mask.Path:
		switch {
		case a.Op == Remove:
			return Answer{}, false // it is the directory above that counts
		case a.Op == Make:
			return allowed(), true // EEXIST
		case a.Op == Metadata:
			errno = "EROFS"
		case a.Op == Truncate && !v.mask.Dir:
			errno = "EINVAL"
		case a.Op == Truncate, v.mask.Dir && a.Op == Open && a.Flags&Write != 0:
			errno = "EISDIR"
		case v.mask.Dir && a.Op == Open && w.Override:
			errno = "" // an empty list
		case a.Op == TempFile:
			errno = "EROFS"
		}
	case w.Override && (a.Op == Make || a.Op == Remove || a.Op == Open && a.Flags&Creat != 0):
		errno = "EROFS"
	case w.Override:
		errno = "ENOENT"
	}
	if w.Override && strings.Contains(strings.TrimPrefix(p, v.mask.Path+"/"), "/") && p != v.mask.Path {
		errno = "ENOENT" // nor is there the directory
	}
	return Answer{Verdict: Refused, By: Mounts, Errno: errno, At: p, Mount: v.mask}, true
}

// open follows open(2): a new file is made by the rights of its directory, one
// that is there is opened by its own.
func (w *World) open(a *Act) Answer {
	v := w.look(a.Path)
	if a.Missing && a.Flags&Creat != 0 {
		if ans := w.change(above(a.Path), landlock.FSMakeReg); ans.Verdict != Allowed {
			return ans
		}
		return w.lacks(a.Path, v, opens(a))
	}
	if a.Mode.IsDir() && a.Flags&Write != 0 { // EISDIR: it stands for changing what is in it
		return w.change(a.Path, landlock.FSMakeReg|landlock.FSRemoveFile)
	}
	regular := a.Mode.IsRegular()
	if w.Landlock != nil && w.Landlock.HandledFS&landlock.FSTruncate == 0 && a.Flags&(Trunc|Write) == Trunc && w.Filter != nil {
		return refused(Seccomp, "EACCES", a.Path)
	}
	if v.readOnly && regular && a.Flags&(Write|Trunc) != 0 {
		return erofs(a.Path, v)
	}
	need := opens(a)
	if regular && a.Flags&Trunc != 0 {
		need |= landlock.FSTruncate
	}
	return w.lacks(a.Path, v, need)
}

// opens are the rights that an access mode takes.
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

func (w *World) truncate(a *Act) Answer {
	if w.Landlock != nil && w.Landlock.HandledFS&landlock.FSTruncate == 0 && w.Filter != nil {
		return refused(Seccomp, "EACCES", a.Path)
	}
	if !a.Mode.IsRegular() {
		return allowed() // EINVAL or EISDIR
	}
	return w.change(a.Path, landlock.FSTruncate)
}

// change answers for what a mount's being read-only refuses first.
func (w *World) change(p string, rights uint64) Answer {
	v := w.look(p)
	if v.readOnly {
		ans := erofs(p, v)
		ans.Missing = w.handled(rights) &^ v.rights
		return ans
	}
	return w.lacks(p, v, rights)
}

func (w *World) need(p string, rights uint64) Answer { return w.lacks(p, w.look(p), rights) }

func (w *World) lacks(p string, v view, rights uint64) Answer {
	missing := w.handled(rights) &^ v.rights
	if missing == 0 {
		return allowed()
	}
	ans := refused(Landlock, "EACCES", p)
	ans.Missing = missing
	return ans
}

func (w *World) handled(rights uint64) uint64 {
	if w.Landlock == nil {
		return 0
	}
	return rights & w.Landlock.HandledFS
}

func erofs(p string, v view) Answer {
	ans := refused(Mounts, "EROFS", p)
	ans.Mount = v.why
	return ans
}

func (w *World) busy(p string, x *place) Answer {
	ans := refused(Mounts, "EBUSY", p)
	ans.Mount = x.mount
	return ans
}

// makes is the right to make a file of a type, removes that to remove one.
func makes(mode fs.FileMode) uint64 {
	switch {
	case mode.IsDir():
		return landlock.FSMakeDir
	case mode&fs.ModeSymlink != 0:
		return landlock.FSMakeSym
	case mode&fs.ModeNamedPipe != 0:
		return landlock.FSMakeFifo
	case mode&fs.ModeSocket != 0:
		return landlock.FSMakeSock
	case mode&fs.ModeCharDevice != 0:
		return landlock.FSMakeChar
	case mode&fs.ModeDevice != 0:
		return landlock.FSMakeBlock
	}
	return landlock.FSMakeReg
}

func removes(mode fs.FileMode) uint64 {
	if mode.IsDir() {
		return landlock.FSRemoveDir
	}
	return landlock.FSRemoveFile
}
