package seatbelt

import (
	"fmt"
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
	b.WriteString("^" + regexQuote(strings.TrimSuffix(base, "/")) + "/")
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
		b.WriteString(regexQuote(n.Text))
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
	return regexQuote(string(p.Rune)), nil
}

// classRegex translates a class. Letters and digits may stand in a class of
// every dialect; of other characters, a positive class is written as
// alternatives, and a negated one is refused where dialects would differ.
func classRegex(p glob.Part) (string, error) {
	var class strings.Builder
	var alternatives []string
	for _, r := range p.Class {
		switch {
		case alphanumeric(r):
			fmt.Fprintf(&class, "%c-%c", r.Lo, r.Hi)
		case p.Negate && r.Lo == r.Hi && strings.ContainsRune(" !#$%&'()*+,.:;<=>@_{|}~", r.Lo):
			class.WriteRune(r.Lo)
		case p.Negate || r.Hi-r.Lo > 255:
			return "", fmt.Errorf("%w: the class with %q to %q", errGlobSyntax, r.Lo, r.Hi)
		default:
			for c := r.Lo; c <= r.Hi; c++ {
				if c != '/' { // no name has one
					alternatives = append(alternatives, regexQuote(string(c)))
				}
			}
		}
	}
	if p.Negate {
		return "[^/" + class.String() + "]" + followers, nil
	}
	if class.Len() > 0 {
		alternatives = append(alternatives, "["+class.String()+"]")
	}
	return "(" + strings.Join(alternatives, "|") + ")", nil
}

func alphanumeric(r glob.RuneRange) bool {
	for _, in := range []glob.RuneRange{{Lo: 'a', Hi: 'z'}, {Lo: 'A', Hi: 'Z'}, {Lo: '0', Hi: '9'}} {
		if in.Lo <= r.Lo && r.Hi <= in.Hi {
			return true
		}
	}
	return false
}
