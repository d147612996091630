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
		if !n.Literal {
			re, err := nameRegex([]rune(n.Pattern))
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

// nameRegex translates what glob.Name has as its Pattern.
func nameRegex(p []rune) (string, error) {
	var b strings.Builder
	for len(p) > 0 {
		switch p[0] {
		case '*':
			b.WriteString("[^/]*")
		case '?':
			b.WriteString("[^/]" + followers)
		case '[':
			end := 1
			if p[end] == '^' {
				end++
			}
			for p[end] != ']' {
				end += len(`\a-\z`)
			}
			re, err := classRegex(p[1:end])
			if err != nil {
				return "", err
			}
			b.WriteString(re)
			p = p[end:]
		case '\\':
			p = p[1:]
			fallthrough
		default:
			b.WriteString(regexp.QuoteMeta(string(p[0])))
		}
		p = p[1:]
	}
	return b.String(), nil
}

// classRegex translates a class. It may have letters, digits, and what stands for itself in
// a class of every dialect; a hyphen does at its end.
func classRegex(ranges []rune) (string, error) {
	var class strings.Builder
	open, end := "[", "]"
	if ranges[0] == '^' {
		open, end, ranges = "[^/", "]"+followers, ranges[1:]
	}
	for ; len(ranges) > 0; ranges = ranges[len(`\a-\z`):] {
		switch lo, hi := ranges[1], ranges[4]; {
		case alphanumeric(lo, hi):
			fmt.Fprintf(&class, "%c-%c", lo, hi)
		case lo == '-' && hi == '-':
			end = "-" + strings.TrimPrefix(end, "-")
		case lo == hi && strings.ContainsRune(" !#$%&'()*+,.:;<=>@_{|}~", lo):
			class.WriteRune(lo)
		default:
			return "", fmt.Errorf("the glob cannot be written as a regular expression: the class with %q to %q", lo, hi)
		}
	}
	return open + class.String() + end, nil
}

func alphanumeric(lo, hi rune) bool {
	return 'a' <= lo && hi <= 'z' || 'A' <= lo && hi <= 'Z' || '0' <= lo && hi <= '9'
}
