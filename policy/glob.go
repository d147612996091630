package policy

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Glob is a pattern of absolute paths:
//
//   - any characters but "/", none included
//     ?       one character but "/"
//     [a-z]   one of these characters; [!a-z] and [^a-z] one that is not
//     **      any number of directories, none included; it stands alone
//     between slashes
//     \c      the character c
//
// A leading dot is a character like any other: "*" matches ".env". Upper and
// lower case differ. A pattern matches the path it describes and everything
// below: what is denied to a directory is denied to its content.
type Glob struct {
	segs []segment
}

// segment is a pattern of one file name.
type segment struct {
	deep    bool   // "**"
	literal bool   // no wildcards: text is the name
	text    string // unescaped when literal
	toks    []token
}

// token matches one character, or any number of them.
type token struct {
	star   bool
	any    bool
	negate bool
	r      rune
	class  []runeRange
}

type runeRange struct{ lo, hi rune }

// ParseGlob reads a pattern. It must be absolute and without ".", ".." or
// empty names; DenyPath.Pattern always is.
func ParseGlob(pattern string) (Glob, error) {
	if !strings.HasPrefix(pattern, "/") {
		return Glob{}, fmt.Errorf("pattern %q is not absolute", pattern)
	}
	var g Glob
	for name := range strings.SplitSeq(pattern[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return Glob{}, fmt.Errorf("pattern %q has the name %q, which no path has", pattern, name)
		}
		seg, err := parseSegment(name)
		if err != nil {
			return Glob{}, err
		}
		g.segs = append(g.segs, seg)
	}
	return g, nil
}

// isGlob reports whether s has a wildcard that is not escaped.
func isGlob(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return true
		}
	}
	return false
}

// escapeGlob makes a pattern that matches s alone.
func escapeGlob(s string) string {
	if !strings.ContainsAny(s, `*?[]{}\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if strings.IndexByte(`*?[]{}\`, s[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// parseSegment reads the pattern of one name.
func parseSegment(s string) (segment, error) {
	if s == "**" {
		return segment{deep: true}, nil
	}
	if strings.Contains(s, "**") {
		return segment{}, fmt.Errorf("glob %q: \"**\" must stand alone between slashes, as in \"**/*.pem\"", s)
	}
	seg := segment{literal: true}
	var text strings.Builder
	for rest := s; rest != ""; {
		var t token
		var err error
		if t, rest, err = parseToken(rest); err != nil {
			return segment{}, fmt.Errorf("glob %q: %w", s, err)
		}
		if t.star || t.any || t.class != nil {
			seg.literal = false
		} else {
			text.WriteRune(t.r)
		}
		seg.toks = append(seg.toks, t)
	}
	if seg.literal {
		seg.text, seg.toks = text.String(), nil
	}
	return seg, nil
}

// parseToken reads the first token of a pattern.
func parseToken(s string) (t token, rest string, err error) {
	r, n := utf8.DecodeRuneInString(s)
	switch r {
	case '*':
		return token{star: true}, s[1:], nil
	case '?':
		return token{any: true}, s[1:], nil
	case '[':
		return parseClass(s[1:])
	case '{':
		return token{}, "", errors.New(`braces are not known: write one pattern for each, or "\{" for a brace`)
	case '\\':
		if len(s) == 1 {
			return token{}, "", errors.New("a lone backslash at the end")
		}
		r, m := utf8.DecodeRuneInString(s[1:])
		return token{r: r}, s[1+m:], nil
	}
	return token{r: r}, s[n:], nil
}

// parseClass reads a character class after its opening bracket.
func parseClass(s string) (t token, rest string, err error) {
	t.class = []runeRange{}
	if s != "" && (s[0] == '!' || s[0] == '^') {
		t.negate, s = true, s[1:]
	}
	for first := true; ; first = false {
		if s == "" {
			return token{}, "", errors.New(`"[" without "]"`)
		}
		if s[0] == ']' && !first {
			return t, s[1:], nil
		}
		var lo, hi rune
		if lo, s, err = classRune(s); err != nil {
			return token{}, "", err
		}
		hi = lo
		if len(s) > 1 && s[0] == '-' && s[1] != ']' {
			if hi, s, err = classRune(s[1:]); err != nil {
				return token{}, "", err
			}
		}
		if hi < lo {
			return token{}, "", fmt.Errorf("the range %c-%c is empty", lo, hi)
		}
		t.class = append(t.class, runeRange{lo, hi})
	}
}

// classRune reads one character of a class.
func classRune(s string) (r rune, rest string, err error) {
	if s[0] == '\\' {
		if s = s[1:]; s == "" {
			return 0, "", errors.New("a lone backslash at the end")
		}
	}
	r, n := utf8.DecodeRuneInString(s)
	return r, s[n:], nil
}
