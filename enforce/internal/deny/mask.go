package deny

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// parted gives the denials of secrets that nobody asked for, and the others.
func parted(all []Barred) (secrets, rest []Barred) {
	for _, b := range all {
		if b.Secret {
			secrets = append(secrets, b)
		} else {
			rest = append(rest, b)
		}
	}
	return secrets, rest
}

// mask has what the denials name in a writable tree masked. It says why that
// can't be, or "".
func (d *Denials) mask(t Tree, inside []Barred) string {
	if len(inside) == 0 {
		return ""
	}
	if d.noMasks != "" {
		return "no mount namespace: " + d.noMasks
	}
	hits, err := d.hits(t.Path, inside)
	if err != nil {
		return err.Error()
	}
	for _, h := range hits {
		if err := d.maskOne(h, by(inside, h)); err != nil {
			return err.Error()
		}
	}
	for _, b := range inside {
		if t.Access&policy.Write != 0 && (b.Glob || !slices.ContainsFunc(hits, func(h Hit) bool { return h.as == b.Pattern })) {
			d.out.Later = append(d.out.Later, b.DenyPath)
		}
		d.out.Behind = append(d.out.Behind, b.DenyPath)
	}
	return ""
}

// by is the denial that names a hit.
func by(deny []Barred, h Hit) policy.DenyPath {
	return deny[max(0, slices.IndexFunc(deny, func(b Barred) bool { return b.covers(h.as) }))].DenyPath
}

// maskOne masks one hit.
func (d *Denials) maskOne(h Hit, deny policy.DenyPath) error {
	st, err := d.Host.Lstat(h.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(d.out.Masks) >= maxMasks {
		return fmt.Errorf("it names more than %d files", maxMasks)
	}
	d.out.Masks = append(d.out.Masks, masked{Path: h.Path, Dir: st.Mode.IsDir(), ID: st.ID, Origin: deny.Deny.Origin})
	return nil
}
