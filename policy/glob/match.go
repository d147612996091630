package glob

import (
	"path"
	"strings"
)

// Match reports whether an absolute, clean path is what the pattern
// describes, or lies below it.
func (g Glob) Match(path string) bool {
	_, named := g.set.walk(path)
	return named
}

// MayMatchBelow reports whether the pattern can match dir or something below
// it, so that a walk can leave out the rest.
func (g Glob) MayMatchBelow(dir string) bool {
	at, named := g.set.walk(dir)
	return named || len(at) > 0
}

// match reports whether the segment describes the whole name.
func (seg *Name) match(name string) bool {
	if seg.Literal {
		return seg.Text == name
	}
	ok, err := path.Match(seg.Pattern, name)
	return ok && err == nil
}

// MatchName reports whether a glob without slashes, as in Env.Allow, matches
// a name. A bad glob matches nothing.
func MatchName(glob, name string) bool {
	if !HasMeta(glob) {
		return glob == name
	}
	if prefix, ok := strings.CutSuffix(glob, "*"); ok && !strings.ContainsAny(prefix, `*?[\{`) {
		return strings.HasPrefix(name, prefix)
	}
	// In a variable's name a slash is a character like any other, and control
	// characters are refused.
	seg, err := ParseName(strings.ReplaceAll(glob, "/", "\x01"))
	return err == nil && seg.match(strings.ReplaceAll(name, "/", "\x01"))
}
