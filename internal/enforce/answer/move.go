package answer

import "github.com/zsbx/zsbx/internal/enforce/landlock"

// move answers for rename(2), with or without RENAME_EXCHANGE, and link(2). The kernel first
// checks that both ends are on one mount. Then Landlock checks that a file gains no rights in
// another directory (LANDLOCK_ACCESS_FS_REFER).
func (w *World) move(a *Act) Answer {
	link := a.Op == Link
	for _, p := range []string{a.Path, a.To} {
		if ans, hidden := w.hidden(a, p); hidden {
			return ans
		}
	}
	from := above(a.Path)
	to := above(a.To)
	vf := w.look(from)
	vt := w.look(to)
	vp := w.look(a.Path)
	on := vf.point
	if link {
		on = vp.point
	}
	switch {
	case link && a.ToExists && vt.mask == nil: // behind a mask it does not exist
		return allowed() // EEXIST
	case vt.readOnly && (link || !a.Apart && on == vt.point):
		return w.change(to, makes(a.Mode))
	case a.Apart:
		return allowed() // EXDEV, as without zsbx
	case on != vt.point:
		ans := refused(Mounts, "EXDEV", to)
		ans.Apart = true
		if vp.mask != nil || vp.readOnly && !link {
			ans.At = from
			ans.Mount = vp.why
			ans.Missing = w.handled & removes(a.Mode) &^ vf.rights
		} else if vt.readOnly {
			ans.Mount = vt.why
			ans.Missing = w.handled & makes(a.Mode) &^ vt.rights
		}
		return ans
	case a.Missing:
		return allowed() // ENOENT
	}
	ans := w.refer(a, from, to, vf, vt)
	if ans.Verdict == Allowed && !link && a.Path != a.To {
		ans = w.busy(a.Path)
		if ans.Verdict == Allowed {
			ans = w.busy(a.To)
		}
	}
	return ans
}

// refer answers as Landlock does.
func (w *World) refer(a *Act, from, to string, vf, vt view) Answer {
	needFrom := removes(a.Mode)
	needTo := makes(a.Mode)
	switch {
	case a.Op == Link:
		needFrom = 0
	case a.Op == Exchange:
		needFrom |= makes(a.ToMode)
		fallthrough
	case a.ToExists:
		needTo |= removes(a.ToMode)
	}
	for _, ans := range []Answer{w.need(from, needFrom), w.need(to, needTo)} {
		if ans.Verdict == Refused {
			return ans
		}
	}
	ans := refused(Landlock, "EXDEV", to)
	switch refer := w.handled & landlock.FSRefer; {
	case from == to:
		return allowed()
	case refer&^vf.rights != 0:
		ans.At = from
		ans.Missing = refer
	case refer&^vt.rights != 0:
		ans.Missing = refer
	default:
		ans.Gains = w.gains(a.Path, vt, a.Mode.IsDir())
		if a.Op == Exchange {
			ans.Gains |= w.gains(a.To, vf, a.ToMode.IsDir())
		}
		if ans.Gains == 0 {
			return allowed()
		}
	}
	return ans
}

// gains returns the rights at a new place that a file or directory lacks at p.
func (w *World) gains(p string, there view, dir bool) uint64 {
	gained := w.handled & there.rights &^ w.look(p).rights
	if !dir {
		gained &= landlock.FileRights
	}
	return gained
}
