package resolve

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/syntax"
	"github.com/zsbx/zsbx/policy"
)

func (rs *resolver) denials(deny []policy.Named) {
	rs.r.Deny = slices.Grow(rs.r.Deny, len(deny))
	for _, d := range deny {
		if dp, err := rs.deny(d); err != nil {
			rs.fail(d.Origin, expandCode(err), "", err.Error())
		} else {
			rs.r.Deny = append(rs.r.Deny, dp)
		}
	}
}

func (rs *resolver) deny(d policy.Named) (DenyPath, error) {
	if err := syntax.CheckDenial(d.Value); err != nil {
		return DenyPath{}, err
	}
	whole, err := rs.host.whole(d.Value, glob.QuoteMeta) // what "~" and variables stand for is taken literally
	if err != nil {
		return DenyPath{}, err
	}
	if !strings.HasPrefix(whole, "/") {
		whole = glob.QuoteMeta(rs.host.Dir) + "/" + whole
	}
	fixed, rest := glob.Split(whole)
	if strings.Contains(rest+"/", "/../") {
		return DenyPath{}, fmt.Errorf(`denial %q can never match: ".." can't follow a wildcard`, d.Value)
	}
	abs := path.Clean(fixed)
	pl, err := rs.w.Spelled(abs)
	if errors.Is(err, fs.ErrPermission) {
		// The command can't look there either: deny the path as it is written.
		pl.Path = abs
		err = nil
	}
	if err != nil {
		return DenyPath{}, fmt.Errorf("%s: %w", d.Value, err)
	}
	if pl.Unread != "" { // the name may be spelled in another way, so the whole directory is denied
		pl.Path = pl.Unread
		rest = ""
	}
	out := DenyPath{Pattern: pl.Path, Deny: d, Glob: rest != ""}
	if out.Glob {
		out.Pattern = path.Join(glob.QuoteMeta(pl.Path), rest)
		_, err = glob.Parse(out.Pattern)
	}
	if slices.Contains([]string{"/", "/*", "/**"}, out.Pattern) {
		return DenyPath{}, fmt.Errorf("denying %s leaves nothing to run", out.Pattern)
	}
	return out, err
}
