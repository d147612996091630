package glob

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
	names []Name
	set   Set
}

// Names gives the pattern name by name, for those who have to say it in
// another language. They are not to be changed.
func (g Glob) Names() []Name { return g.names }

// Name is the pattern of one file name.
type Name struct {
	Deep    bool   // "**": any number of directories
	Literal bool   // no wildcards: only Text is matched
	Text    string // unescaped
	Parts   []Part // when neither Deep nor Literal

	pattern string // of these, as path.Match has it
}

// Part matches one character, Rune unless another field is set, or any
// number of them.
type Part struct {
	Star   bool        // any number of characters
	Any    bool        // one, whichever
	Class  []RuneRange // one of these, when it is not nil
	Negate bool        // or one that is none of them
	Rune   rune
}

// RuneRange is the characters from Lo to Hi, both included.
type RuneRange struct{ Lo, Hi rune }

// Parse reads a pattern. It must be absolute and without ".", ".." or
// empty names; DenyPath.Pattern always is.
func Parse(pattern string) (Glob, error) {
	if !strings.HasPrefix(pattern, "/") {
		return Glob{}, fmt.Errorf("pattern %q is not absolute", pattern)
	}
	var g Glob
	for name := range strings.SplitSeq(pattern[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return Glob{}, fmt.Errorf("pattern %q has the name %q, which no path has", pattern, name)
		}
		seg, err := ParseName(name)
		if err != nil {
			return Glob{}, err
		}
		g.names = append(g.names, seg)
	}
	g.set = NewSet([]Glob{g})
	return g, nil
}

// HasMeta reports whether s has a wildcard that is not escaped.
func HasMeta(s string) bool {
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

// QuoteMeta makes a pattern that matches s alone.
func QuoteMeta(s string) string {
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

// ParseName reads the pattern of one name.
func ParseName(s string) (Name, error) {
	if s == "**" {
		return Name{Deep: true}, nil
	}
	if strings.Contains(s, "**") {
		return Name{}, fmt.Errorf("glob %q: \"**\" must stand alone between slashes, as in \"**/*.pem\"", s)
	}
	n := Name{Literal: true, Parts: make([]Part, 0, len(s))}
	for rest := s; rest != ""; {
		part, after, err := parsePart(rest)
		if err != nil {
			return Name{}, fmt.Errorf("glob %q: %w", s, err)
		}
		written := strings.TrimPrefix(rest[:len(rest)-len(after)], `\`) // the bytes as they are: a name need not be UTF-8
		switch {
		case part.Class != nil:
			n.Literal, n.pattern = false, n.pattern+part.class()
		case part.Star || part.Any:
			n.Literal, n.pattern = false, n.pattern+written
		default:
			n.Text, n.pattern = n.Text+written, n.pattern+QuoteMeta(written)
		}
		n.Parts, rest = append(n.Parts, part), after
	}
	if n.Literal {
		n.Parts = nil
	} else {
		n.Text = ""
	}
	return n, nil
}

// class is a character class as path.Match has it, which knows no "!", and no bracket
// or hyphen that stands for itself.
func (t *Part) class() string {
	s := "["
	if t.Negate {
		s += "^"
	}
	for _, c := range t.Class {
		s += `\` + string(c.Lo) + `-\` + string(c.Hi)
	}
	return s + "]"
}

// parsePart reads the first part of a pattern.
func parsePart(s string) (p Part, rest string, err error) {
	switch s[0] {
	case '*':
		return Part{Star: true}, s[1:], nil
	case '?':
		return Part{Any: true}, s[1:], nil
	case '[':
		return parseClass(s[1:])
	case '{':
		return Part{}, "", errors.New(`braces are not known: write one pattern for each, or "\{" for a brace`)
	}
	p.Rune, rest, err = char(s)
	return p, rest, err
}

// parseClass reads a character class after its opening bracket.
func parseClass(s string) (p Part, rest string, err error) {
	if s != "" && (s[0] == '!' || s[0] == '^') {
		p.Negate, s = true, s[1:]
	}
	for len(p.Class) == 0 || !strings.HasPrefix(s, "]") {
		if s == "" {
			return Part{}, "", errors.New(`"[" without "]"`)
		}
		var lo, hi rune
		if lo, s, err = char(s); err != nil {
			return Part{}, "", err
		}
		hi = lo
		if len(s) > 1 && s[0] == '-' && s[1] != ']' {
			if hi, s, err = char(s[1:]); err != nil {
				return Part{}, "", err
			}
		}
		if hi < lo {
			return Part{}, "", fmt.Errorf("the range %c-%c is empty", lo, hi)
		}
		p.Class = append(p.Class, RuneRange{lo, hi})
	}
	return p, s[1:], nil
}

// char reads one character, which may stand behind a backslash.
func char(s string) (r rune, rest string, err error) {
	if s = strings.TrimPrefix(s, `\`); s == "" {
		return 0, "", errors.New("a lone backslash at the end")
	}
	r, n := utf8.DecodeRuneInString(s)
	return r, s[n:], nil
}

// Split cuts a pattern before its first name with a wildcard, and takes the
// backslashes off the first part.
func Split(s string) (fixed, rest string) {
	fixed = s
	for start := 0; start < len(s); {
		name, _, _ := strings.Cut(s[start:], "/")
		if HasMeta(name) {
			fixed, rest = s[:start], s[start:]
			break
		}
		start += len(name) + 1
	}
	var b strings.Builder
	for i := 0; i < len(fixed); i++ {
		if fixed[i] == '\\' && i+1 < len(fixed) {
			i++
		}
		b.WriteByte(fixed[i])
	}
	return b.String(), rest
}
