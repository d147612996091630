package review

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
)

// view returns the machine with the trees as they are, or as they would be once all changes are made real. It is for
// where paths lead, and has no more than that needs.
func (r *Review) view(old bool) *host.Host {
	return &host.Host{
		Lstat: func(p string) (host.Stat, error) { return r.lstat(p, old) },
		Readlink: func(p string) (string, error) {
			at, in := r.place(p)
			if !in {
				return r.host.Readlink(p)
			}
			_, changed := r.at[at]
			to, err := r.files.Link(at.tree, at.path, old || !changed)
			r.spend(long(to)) // a name that comes again costs no look
			return to, err
		},
	}
}

var errManyLooks = errors.New("the links of the trees lead through too many names")

// lstat is Host.Lstat of a view. A path above a tree is known to have no links.
func (r *Review) lstat(p string, old bool) (st host.Stat, err error) {
	if !r.spend(costsLook + len(p)/8) {
		return st, errManyLooks
	}
	if slices.ContainsFunc(r.trees, func(tree string) bool { return host.Within(tree, p) }) {
		return host.Stat{Mode: fs.ModeDir}, nil
	}
	at, in := r.place(p)
	i, changed := r.at[at]
	switch {
	case in && changed && !old && r.Changes[i].Op == layer.Remove:
		err = fs.ErrNotExist
	case in && changed && !old:
		st.Mode = r.Changes[i].Type
	case in:
		st.Mode, err = r.files.Type(at.tree, at.path)
	default:
		st, err = r.host.Lstat(p)
	}
	if errors.Is(err, syscall.ENAMETOOLONG) && len(path.Base(p)) > maxName {
		err = fs.ErrNotExist
	}
	return st, err
}

// maxName is the longest name of a file (NAME_MAX).
const maxName = 255

// ends returns where a path leads in both views. Each link in the trees on the way counts, for a reason.
func (r *Review) ends(p, why string) (all []string) {
	if !r.spend(long(p)) {
		return nil
	}
	for _, h := range []*host.Host{r.before, r.after} {
		way := h.Way(p)
		r.unknown = r.unknown || way.Presence == host.Unknown
		for _, link := range way.Links {
			at, in := r.place(link)
			if in && r.passed[at] == "" {
				r.passed[at] = why
			}
		}
		if !slices.Contains(all, way.Path) {
			all = append(all, way.Path)
		}
	}
	return all
}
