package enforce

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// splitGlob splits an absolute glob into the path that its first elements
// name, unescaped, and the elements from the first wildcard on.
func splitGlob(pattern string) (fixed string, rest []string) {
	elems := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	for i, e := range elems {
		name, plain := unescapeGlob(e)
		if !plain {
			rest = elems[i:]
			break
		}
		fixed += "/" + name
	}
	if fixed == "" {
		fixed = "/"
	}
	return fixed, rest
}

// unescapeGlob is the only name that an element matches; plain is false when
// it has a wildcard.
func unescapeGlob(e string) (name string, plain bool) {
	var b strings.Builder
	for i := 0; i < len(e); i++ {
		switch e[i] {
		case '*', '?', '[':
			return "", false
		case '\\':
			if i++; i == len(e) {
				return "", false
			}
		}
		b.WriteByte(e[i])
	}
	return b.String(), true
}

// followers are bytes outside ASCII. Whether Seatbelt's matcher counts bytes
// or characters is not known, so what stands for one character takes those that
// follow along: a denial may match more than was written, but not less.
const followers = "[^ -~]*"

// globRegex writes the glob elements below base as a regular expression that
// matches what they name and all that lies below. The globs are policy.Glob's.
// The expression has nothing but anchors, the dot, classes, "*", "+", "?",
// groups and "|": what profiles in the field use too.
func globRegex(base string, elems []string) (string, error) {
	var b strings.Builder
	b.WriteString("^" + regexQuote(strings.TrimSuffix(base, "/")) + "/")
	for i, e := range elems {
		last := i == len(elems)-1
		if e == "**" {
			if last {
				b.WriteString(".+")
			} else {
				b.WriteString("(.*/)?")
			}
			continue
		}
		re, err := elementRegex(e)
		if err != nil {
			return "", err
		}
		b.WriteString(re)
		if !last {
			b.WriteByte('/')
		}
	}
	b.WriteString("(/.*)?$")
	return b.String(), nil
}

// elementRegex translates one element of a glob, which has no slash.
func elementRegex(e string) (string, error) {
	var b strings.Builder
	for e != "" {
		switch e[0] {
		case '*':
			b.WriteString("[^/]*")
			e = e[1:]
		case '?':
			b.WriteString("[^/]" + followers)
			e = e[1:]
		case '[':
			re, n, err := classRegex(e)
			if err != nil {
				return "", err
			}
			b.WriteString(re)
			e = e[n:]
		case '\\':
			e = e[1:]
			if e == "" {
				return "", fmt.Errorf("%w: a lone backslash at the end", errGlobSyntax)
			}
			fallthrough
		default:
			_, n := utf8.DecodeRuneInString(e)
			b.WriteString(regexQuote(e[:n]))
			e = e[n:]
		}
	}
	return b.String(), nil
}

// runeRange is a part of a class: the characters from lo to hi.
type runeRange struct{ lo, hi rune }

// classRegex translates the class at the start of s, and says how many bytes
// of s it was. Letters and digits may stand in a class of every dialect; of
// other characters, a positive class is written as alternatives, and a negated
// one is refused where dialects would differ.
func classRegex(s string) (re string, n int, err error) {
	ranges, negated, n, err := parseClass(s)
	if err != nil {
		return "", 0, err
	}
	var class strings.Builder
	var alternatives []string
	for _, r := range ranges {
		switch {
		case alphanumeric(r):
			fmt.Fprintf(&class, "%c-%c", r.lo, r.hi)
		case negated && r.lo == r.hi && strings.ContainsRune(" !#$%&'()*+,.:;<=>@_{|}~", r.lo):
			class.WriteRune(r.lo)
		case negated || r.hi-r.lo > 255:
			return "", 0, fmt.Errorf("%w: class %s", errGlobSyntax, s[:n])
		default:
			for c := r.lo; c <= r.hi; c++ {
				alternatives = append(alternatives, regexQuote(string(c)))
			}
		}
	}
	if negated {
		return "[^/" + class.String() + "]" + followers, n, nil
	}
	if class.Len() > 0 {
		alternatives = append(alternatives, "["+class.String()+"]")
	}
	return "(" + strings.Join(alternatives, "|") + ")", n, nil
}

func alphanumeric(r runeRange) bool {
	for _, in := range []runeRange{{'a', 'z'}, {'A', 'Z'}, {'0', '9'}} {
		if in.lo <= r.lo && r.hi <= in.hi {
			return true
		}
	}
	return false
}

// parseClass reads "[a-z]" or "[!a-z]" at the start of s.
func parseClass(s string) (ranges []runeRange, negated bool, n int, err error) {
	bad := fmt.Errorf("%w: class %s", errGlobSyntax, s)
	next := func() (rune, bool) {
		if n < len(s) && s[n] == '\\' {
			n++
		}
		r, size := utf8.DecodeRuneInString(s[n:])
		n += size
		return r, size > 0
	}
	n = 1
	if n < len(s) && (s[n] == '!' || s[n] == '^') {
		negated = true
		n++
	}
	for first := true; ; first = false {
		if n < len(s) && s[n] == ']' && !first {
			return ranges, negated, n + 1, nil
		}
		lo, ok := next()
		if !ok {
			return nil, false, 0, bad
		}
		hi := lo
		if n+1 < len(s) && s[n] == '-' && s[n+1] != ']' {
			n++
			if hi, ok = next(); !ok || hi < lo {
				return nil, false, 0, bad
			}
		}
		ranges = append(ranges, runeRange{lo, hi})
	}
}
