package seatbelt

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/zsbx/zsbx/internal/glob"
)

// SplitGlob splits a glob into the path that its literal first names make, and the names from
// the first wildcard on.
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

// followers matches bytes outside ASCII. It is unknown whether Seatbelt's matcher counts bytes
// or characters. So a wildcard for one character also matches following bytes of that kind. A
// denial may match more than was written, but not less.
const followers = "[^ -~]*"

// GlobRegex turns a glob's names below base into a regular expression that matches what they
// name and all below that. It uses only anchors, the dot, classes, "*", "+", "?", groups and
// "|", as profiles in the field do.
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

// nameRegex translates a glob.Name's Pattern.
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

// classRegex translates a class. It accepts letters, digits, and characters without a special
// meaning in a class of any dialect. It puts a hyphen at the end.
func classRegex(ranges []rune) (string, error) {
	var class strings.Builder
	open := "["
	end := "]"
	if ranges[0] == '^' {
		open = "[^/"
		end = "]" + followers
		ranges = ranges[1:]
	}
	for ; len(ranges) > 0; ranges = ranges[len(`\a-\z`):] {
		lo := ranges[1]
		hi := ranges[4]
		switch {
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
