package policy

import (
	"errors"
	"io/fs"

	"github.com/zsbx/zsbx/policy/shell"
)

// missingHint is what to type where a path is missing: what is to be written can
// be made, by hand or by zsbx.
func missingHint(rule *Rule, written string) string {
	switch {
	case rule.Access&Write == 0:
		return "--ignore-missing"
	case rule.Origin.flag():
		return "mkdir -p " + shell.Quote(written) + "\n--create-missing"
	}
	return "mkdir -p " + shell.Quote(written)
}

// whyGone tells why there is nothing at the path that was written.
func (pl *place) whyGone(written string) string {
	why := pl.at + " " + pl.gone
	if written == pl.at {
		return why
	}
	return written + ": " + why
}

// homeless reports whether a path lies in a home directory that there is not: none
// is ever made.
func (rs *resolver) homeless(p string) bool {
	if rs.r.Home == "" || !Within(p, rs.r.Home) {
		return false
	}
	_, err := rs.host.Lstat(rs.r.Home)
	return errors.Is(err, fs.ErrNotExist)
}
