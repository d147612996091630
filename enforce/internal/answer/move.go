package answer

import (
	"path"

	"github.com/zsbx/zsbx/enforce/internal/landlock"
)

// fileRights are those that are about a file itself, whatever directory has it.
const fileRights = landlock.FileRights

// move answers for rename(2), its exchange and link(2). Before Landlock is asked,
// both ends have to lie on one mount; what moves to another directory may not
// gain rights there (LANDLOCK_ACCESS_FS_REFER).
func (w *World) move(a *Act) Answer {
	if ans := w.held(a); ans.Verdict != Allowed {
		return ans
	}
	for _, p := range []string{a.Path, a.To} {
		if ans, hidden := w.behind(a, p); hidden {
			return ans
		}
	}
	from, to := above(a.Path), above(a.To)
	vf, vt := w.look(from), w.look(to)
	onFrom := vf.point
	if a.Op == Link {
		if a.ToExists && vt.mask == nil { // behind a mask it is not there
			return allowed() // EEXIST
		}
		if vt.readOnly {
			return w.change(to, makes(a.Mode))
		}
		onFrom = w.look(a.Path).point
	}
	switch {
	case a.Apart:
		return allowed() // EXDEV, as without zsbx
	case onFrom != vt.point:
		return w.across(a, from, to, vf, vt)
	case vt.readOnly:
		return w.change(to, makes(a.Mode))
	case a.Missing:
		return allowed() // ENOENT
	}
	if ans := w.refer(a, from, to, vf, vt); ans.Verdict != Allowed {
		return ans
	}
	if a.Op != Link && a.Path != a.To {
		for _, p := range []string{a.Path, a.To} {
			if x := w.onPoint(p); x != nil {
				return w.busy(p, x)
			}
		}
	}
	return allowed()
}

// held answers for the broker, which looks at what is renamed before the kernel does.
func (w *World) held(a *Act) Answer {
	for _, p := range []string{a.Path, a.To} {
		if x := w.onPoint(p); x != nil && a.Op != Link && w.Broker.Holds(path.Base(p)) {
			return erofs(p, view{why: x.mount})
		}
	}
	return allowed()
}

// across answers where the two ends lie on different mounts of the command's.
func (w *World) across(a *Act, from, to string, vf, vt view) Answer {
	ans := refused(Mounts, "EXDEV", to)
	ans.Apart = true
	switch vp := w.look(a.Path); {
	case vp.mask != nil || vp.readOnly && a.Op != Link:
		ans.At, ans.Mount, ans.Missing = from, vp.why, w.handled(removes(a.Mode))&^vf.rights
	case vt.readOnly:
		ans.Mount, ans.Missing = vt.why, w.handled(makes(a.Mode))&^vt.rights
	}
	return ans
}

// behind answers for a path below a directory that is hidden: nobody gets as far
// without the right to search it, and there is nothing.
func (w *World) behind(a *Act, p string) (Answer, bool) {
	v := w.look(p)
	if v.mask == nil || v.mask.Path == p {
		return Answer{}, false
	}
	errno := "EACCES"
	if w.Override {
		if above(p) == v.mask.Path && (a.Op != Link || p == a.To) {
			return Answer{}, false
		}
		errno = "ENOENT"
	}
	return Answer{Verdict: Refused, By: Mounts, Errno: errno, At: p, Mount: v.mask}, true
}

// refer is Landlock's decision.
func (w *World) refer(a *Act, from, to string, vf, vt view) Answer {
	var needFrom uint64
	needTo := makes(a.Mode)
	if a.Op != Link {
		needFrom = removes(a.Mode)
		if a.ToExists {
			needTo |= removes(a.ToMode)
		}
		if a.Op == Exchange {
			needFrom |= makes(a.ToMode)
		}
	}
	if from == to {
		return w.lacks(to, vt, needFrom|needTo)
	}
	if ans := w.lacks(from, vf, needFrom); ans.Verdict != Allowed {
		return ans
	}
	if ans := w.lacks(to, vt, needTo); ans.Verdict != Allowed {
		return ans
	}
	handled := w.handled(^uint64(0))
	if handled == 0 {
		return allowed()
	}
	ans := refused(Landlock, "EXDEV", to)
	switch refer := uint64(landlock.FSRefer); {
	case vf.rights&refer == 0:
		ans.At, ans.Missing = from, refer
	case vt.rights&refer == 0:
		ans.Missing = refer
	default:
		ans.Gains = gains(handled, w.Rights(a.Path), vt.rights, a.Mode.IsDir())
		if a.Op == Exchange && ans.Gains == 0 {
			ans.At, ans.Gains = from, gains(handled, w.Rights(a.To), vf.rights, a.ToMode.IsDir())
		}
		if ans.Gains == 0 {
			return allowed()
		}
	}
	return ans
}

// gains are the rights at a new place that a file or directory did not have.
func gains(handled, had, new uint64, dir bool) uint64 {
	if !dir {
		handled &= fileRights
	}
	return new &^ had & handled
}
