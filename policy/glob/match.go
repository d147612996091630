package glob

import (
	"strings"
	"unicode/utf8"
)

// Match reports whether an absolute, clean path is what the pattern
// describes, or lies below it.
func (g Glob) Match(path string) bool {
	if len(g.segs) == 0 {
		return false
	}
	// The one backtracking point that "*" needs serves for "**" as well:
	// a later "**" never has to give back what an earlier one took.
	rest := strings.TrimPrefix(path, "/")
	i := 0
	backSeg, backRest, canBack := 0, "", false
	for {
		if i == len(g.segs) {
			return true // the pattern is used up: this is it, or below it
		}
		if g.segs[i].Deep {
			if i == len(g.segs)-1 {
				return rest != ""
			}
			i++
			backSeg, backRest, canBack = i, rest, true
			continue
		}
		if rest != "" {
			name, after, _ := strings.Cut(rest, "/")
			if g.segs[i].match(name) {
				i, rest = i+1, after
				continue
			}
		}
		if !canBack || backRest == "" {
			return false
		}
		_, backRest, _ = strings.Cut(backRest, "/")
		i, rest = backSeg, backRest
	}
}

// MayMatchBelow reports whether the pattern can match dir or something below
// it, so that a walk can leave out the rest.
func (g Glob) MayMatchBelow(dir string) bool {
	rest := strings.TrimPrefix(dir, "/")
	for _, seg := range g.segs {
		if seg.Deep || rest == "" {
			return true
		}
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if !seg.match(name) {
			return false
		}
	}
	return len(g.segs) > 0
}

// match reports whether the segment describes the whole name.
func (seg *Name) match(name string) bool {
	if seg.Literal {
		return seg.Text == name
	}
	return matchTokens(seg.Parts, name)
}

func matchTokens(toks []Part, name string) bool {
	i := 0
	backTok, backName := -1, ""
	for {
		if i < len(toks) && toks[i].Star {
			i++
			backTok, backName = i, name
			continue
		}
		if name == "" && i == len(toks) {
			return true
		}
		if name != "" && i < len(toks) {
			r, n := utf8.DecodeRuneInString(name)
			if toks[i].matches(r) {
				i, name = i+1, name[n:]
				continue
			}
		}
		if backTok < 0 || backName == "" {
			return false
		}
		_, n := utf8.DecodeRuneInString(backName)
		backName = backName[n:]
		i, name = backTok, backName
	}
}

// matches reports whether a token that is no star takes the character.
func (t *Part) matches(r rune) bool {
	if t.Any {
		return true
	}
	if t.Class == nil {
		return t.Rune == r
	}
	for _, c := range t.Class {
		if c.Lo <= r && r <= c.Hi {
			return !t.Negate
		}
	}
	return t.Negate
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
	seg, err := ParseName(glob)
	return err == nil && seg.match(name)
}
