package deny

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

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
		if skip(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		more := []Tree{{Path: p, Access: t.Access, Mode: st.Mode.Type(), ID: st.ID, Origin: t.Origin, Data: t.Data, Part: true}}
		if len(inner) == 0 {
			if d.added++; d.added > maxSiblings {
				return nil, errTooLarge
			}
		} else if more, err = d.split(more[0], inner); err != nil && !skip(err) {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// skip reports whether something is left out for an error: it is not there any more, as a
// process that ended, or nothing can be learned of it. Nothing in it is allowed then.
func skip(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrPermission)
}
