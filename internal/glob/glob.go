package glob

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Glob is a pattern of absolute paths:
//
//	?       one character except "/"
//	*       any number of characters except "/"
//	[a-z]   one of these characters; [!a-z] and [^a-z] one that is not
//	**      any number of directories; it stands alone between slashes
//	\c      the character c
//
// A leading dot is a character like any other: "*" matches ".env". Upper and
// lower case differ. A pattern matches the path it describes and everything
// below: what is denied for a directory is denied for its content.
type Glob struct {
	names []Name
	set   Set
}

// Names returns the pattern name by name, so that it can be translated to another
// language. The caller must not change them.
func (g Glob) Names() []Name { return g.names }

// Name is the pattern of one file name.
type Name struct {
	Deep    bool   // "**": any number of directories
	Literal bool   // no wildcards: only Text is matched
	Text    string // unescaped; "" if there are wildcards
	Pattern string // as path.Match takes it, each class as ranges of escaped characters: [^\a-\z\_-\_]

	ending string // what a name must end in, for "*" and characters; "" for other patterns
}

// Parse reads a pattern. It must be absolute and without ".", ".." or
// empty names, as DenyPath.Pattern always is.
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
	n := Name{Literal: true}
	for rest := s; rest != ""; {
		var err error
		switch at := rest; rest[0] {
		case '*', '?':
			n.Literal = false
			n.Pattern += rest[:1]
			rest = rest[1:]
		case '[':
			var class string
			class, rest, err = parseClass(rest[1:])
			n.Literal = false
			n.Pattern += class
		case '{':
			err = errors.New(`braces are not known: write one pattern for each, or "\{" for a brace`)
		default:
			_, rest, err = char(rest)
			// The bytes are taken as they are: a name need not be UTF-8.
			written := strings.TrimPrefix(at[:len(at)-len(rest)], `\`)
			n.Text += written
			n.Pattern += QuoteMeta(written)
		}
		if err != nil {
			return Name{}, fmt.Errorf("glob %q: %w", s, err)
		}
	}
	if !n.Literal {
		if n.Pattern == "*"+QuoteMeta(n.Text) {
			n.ending = n.Text
		}
		n.Text = ""
	}
	return n, nil
}

// parseClass reads a character class after its opening bracket. path.Match does not know
// "!", or an unescaped bracket or hyphen that stands for itself.
func parseClass(s string) (class, rest string, err error) {
	class = "["
	if s != "" && (s[0] == '!' || s[0] == '^') {
		class = "[^"
		s = s[1:]
	}
	for first := true; first || !strings.HasPrefix(s, "]"); first = false {
		if s == "" {
			return "", "", errors.New(`"[" without "]"`)
		}
		if kind, in := strings.CutPrefix(s, "[:"); in && strings.Contains(kind, ":]") {
			return "", "", errors.New(`classes such as "[:alpha:]" are not known: write a range, or "\[" for a bracket`)
		}
		var lo, hi rune
		lo, s, err = char(s)
		if err != nil {
			return "", "", err
		}
		hi = lo
		if len(s) > 1 && s[0] == '-' && s[1] != ']' {
			hi, s, err = char(s[1:])
			if err != nil {
				return "", "", err
			}
		}
		if hi < lo {
			return "", "", fmt.Errorf("the range %c-%c is empty", lo, hi)
		}
		class += `\` + string(lo) + `-\` + string(hi)
	}
	return class + "]", s[1:], nil
}

// char reads one character, which may follow a backslash.
func char(s string) (r rune, rest string, err error) {
	s = strings.TrimPrefix(s, `\`)
	if s == "" {
		return 0, "", errors.New("a lone backslash at the end")
	}
	r, n := utf8.DecodeRuneInString(s)
	return r, s[n:], nil
}

// Split cuts a pattern before its first name with a wildcard, and removes the
// backslashes from the first part.
func Split(s string) (fixed, rest string) {
	fixed = s
	for start := 0; start < len(s); {
		name, _, _ := strings.Cut(s[start:], "/")
		if HasMeta(name) {
			fixed = s[:start]
			rest = s[start:]
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

// Match reports whether an absolute, clean path is what the pattern describes, or is
// below that.
func (g Glob) Match(path string) bool {
	_, named := g.set.walk(path)
	return named
}

// MayMatchBelow reports whether the pattern can match dir or something below it. A walk
// can skip other directories.
func (g Glob) MayMatchBelow(dir string) bool {
	at, named := g.set.walk(dir)
	return named || len(at) > 0
}

// match reports whether the segment describes the whole name.
func (seg *Name) match(name string) bool {
	switch {
	case seg.Literal:
		return seg.Text == name
	case seg.ending != "": // path.Match takes ten times as long
		return strings.HasSuffix(name, seg.ending)
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
