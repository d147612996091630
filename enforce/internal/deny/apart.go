package deny

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// Split allows the entries of a tree that lead to none of some paths as they are, and
// takes the others apart.
func Split(host *policy.Host, t Tree, without []string) ([]Tree, error) {
	hits := make([]hit, len(without))
	for i, p := range without {
		hits[i] = hit{Path: p, dir: true}
	}
	return newDenials(Request{Host: host}).split(t, hits)
}

func (d *denials) split(t Tree, hits []hit) ([]Tree, error) {
	entries, err := d.Host.ReadDir(t.Path)
	if err != nil {
		return nil, err
	}
	var out []Tree
	if !slices.ContainsFunc(hits, func(h hit) bool { return h.dir }) {
		// Listing is harmless when only files are denied below. A denied
		// directory could be listed by it, so then t can't be listed.
		list := t
		list.ListOnly = true
		out = append(out, list)
	}
	in := make(map[string][]hit) // by the entry that they lie in
	for _, h := range hits {
		name, _, _ := strings.Cut(strings.TrimPrefix(h.Path[len(t.Path):], "/"), "/")
		in[name] = append(in[name], h)
	}
	for _, e := range entries {
		p, inner := path.Join(t.Path, e.Name()), in[e.Name()]
		if e.Type()&fs.ModeSymlink != 0 || slices.ContainsFunc(inner, func(h hit) bool { return h.Path == p }) {
			continue // Landlock looks at a link's target, not at the link
		}
		st, err := d.Host.Lstat(p)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue // not there any more, or nothing can be learned of it
		}
		if err != nil {
			return nil, err
		}
		more := []Tree{{Path: p, Access: t.Access, Mode: st.Mode.Type(), ID: st.ID, Origin: t.Origin, Data: t.Data, Part: true}}
		if len(inner) == 0 {
			if d.added++; d.added > maxSiblings {
				return nil, errTooLarge
			}
		} else if more, err = d.split(more[0], inner); err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, err // of what can't be looked into nothing is allowed
		}
		out = append(out, more...)
	}
	return out, nil
}
