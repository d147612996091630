package seatbelt

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/zsbx/zsbx/policy/glob"
)

// SplitGlob splits a glob into the path that its first names spell out and
// the names from the first wildcard on.
func SplitGlob(g glob.Glob) (fixed string, rest []glob.Name) {
	rest = g.Names()
	for len(rest) > 0 && rest[0].Literal {
		fixed += "/" + rest[0].Text
		rest = rest[1:]
	}
	if fixed == "" {
		fixed = "/"
	}
	return fixed, rest
}

// followers are bytes outside ASCII. Whether Seatbelt's matcher counts bytes
// or characters is not known, so what stands for one character takes those that
// follow along: a denial may match more than was written, but not less.
const followers = "[^ -~]*"

// GlobRegex writes the names of a glob below base as a regular expression that
// matches what they name and all that lies below. The expression has nothing
// but anchors, the dot, classes, "*", "+", "?", groups and "|": what profiles
// in the field use too.
func GlobRegex(base string, names []glob.Name) (string, error) {
	var b strings.Builder
	b.WriteString("^" + regexp.QuoteMeta(strings.TrimSuffix(base, "/")) + "/")
	for i, n := range names {
		last := i == len(names)-1
		if n.Deep {
			if last {
				b.WriteString(".+")
			} else {
				b.WriteString("(.*/)?")
			}
			continue
		}
		b.WriteString(regexp.QuoteMeta(n.Text))
		for _, part := range n.Parts {
			re, err := partRegex(part)
			if err != nil {
				return "", err
			}
			b.WriteString(re)
		}
		if !last {
			b.WriteByte('/')
		}
	}
	b.WriteString("(/.*)?$")
	return b.String(), nil
}

// partRegex translates one part of a name.
func partRegex(p glob.Part) (string, error) {
	switch {
	case p.Star:
		return "[^/]*", nil
	case p.Any:
		return "[^/]" + followers, nil
	case p.Class != nil:
		return classRegex(p)
	}
	return regexp.QuoteMeta(string(p.Rune)), nil
}

// classRegex translates a class. It may have letters, digits, and what stands for itself in
// a class of every dialect; a hyphen does at its end.
func classRegex(p glob.Part) (string, error) {
	var class strings.Builder
	hyphen := ""
	for _, r := range p.Class {
		switch {
		case alphanumeric(r):
			fmt.Fprintf(&class, "%c-%c", r.Lo, r.Hi)
		case r == glob.RuneRange{Lo: '-', Hi: '-'}:
			hyphen = "-"
		case r.Lo == r.Hi && strings.ContainsRune(" !#$%&'()*+,.:;<=>@_{|}~", r.Lo):
			class.WriteRune(r.Lo)
		default:
			return "", fmt.Errorf("%w: the class with %q to %q", errGlobSyntax, r.Lo, r.Hi)
		}
	}
	if p.Negate {
		return "[^/" + class.String() + hyphen + "]" + followers, nil
	}
	return "[" + class.String() + hyphen + "]", nil
}

func alphanumeric(r glob.RuneRange) bool {
	for _, in := range []glob.RuneRange{{Lo: 'a', Hi: 'z'}, {Lo: 'A', Hi: 'Z'}, {Lo: '0', Hi: '9'}} {
		if in.Lo <= r.Lo && r.Hi <= in.Hi {
			return true
		}
	}
	return false
}
