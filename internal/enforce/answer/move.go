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
	if link && a.ToExists && vt.mask == nil { // behind a mask it does not exist
		return allowed() // EEXIST
	}
	point := vf.point
	if link {
		point = w.look(a.Path).point
	}
	sameMount := point == vt.point
	if vt.readOnly && (link || !a.CrossMount && sameMount) {
		return w.change(to, makes(a.Mode))
	}
	if a.CrossMount {
		return allowed() // EXDEV, as without zsbx
	}
	if !sameMount {
		return w.otherMount(a, from, to)
	}
	if a.Missing {
		return allowed() // ENOENT
	}
	ans := w.refer(a, from, to, vf, vt)
	if ans.Verdict == Refused || link || a.Path == a.To {
		return ans
	}
	ans = w.busy(a.Path)
	if ans.Verdict == Refused {
		return ans
	}
	return w.busy(a.To)
}

// otherMount answers for a move between directories that only the plan's mounts separate. It
// says what the mount keeps from being changed.
func (w *World) otherMount(a *Act, from, to string) Answer {
	ans := refused(Mounts, "EXDEV", to)
	ans.CrossMount = true
	source := w.look(a.Path)
	target := w.look(to)
	switch {
	case source.mask != nil || source.readOnly && a.Op != Link:
		ans.At = from
		ans.Mount = source.why
		ans.Missing = w.handled & removes(a.Mode) &^ w.look(from).rights
	case target.readOnly:
		ans.Mount = target.why
		ans.Missing = w.handled & makes(a.Mode) &^ target.rights
	}
	return ans
}

// refer answers as Landlock does.
func (w *World) refer(a *Act, from, to string, vf, vt view) Answer {
	needFrom := removes(a.Mode)
	needTo := makes(a.Mode)
	switch a.Op {
	case Link:
		needFrom = 0
	case Exchange:
		needFrom |= makes(a.ToMode)
		needTo |= removes(a.ToMode)
	case Rename:
		if a.ToExists {
			needTo |= removes(a.ToMode)
		}
	}
	for _, ans := range []Answer{w.need(from, needFrom), w.need(to, needTo)} {
		if ans.Verdict == Refused {
			return ans
		}
	}
	if from == to {
		return allowed()
	}
	ans := refused(Landlock, "EXDEV", to)
	refer := w.handled & landlock.FSRefer
	if refer&^vf.rights != 0 {
		ans.At = from
		ans.Missing = refer
		return ans
	}
	if refer&^vt.rights != 0 {
		ans.Missing = refer
		return ans
	}
	ans.Gains = w.gains(a.Path, vt, a.Mode.IsDir())
	if a.Op == Exchange {
		ans.Gains |= w.gains(a.To, vf, a.ToMode.IsDir())
	}
	if ans.Gains == 0 {
		return allowed()
	}
	return ans
}

// gains returns the rights that a file or directory lacks at p and would have in another
// directory.
func (w *World) gains(p string, there view, dir bool) uint64 {
	gained := w.handled & there.rights &^ w.look(p).rights
	if !dir {
		gained &= landlock.FileRights
	}
	return gained
}
