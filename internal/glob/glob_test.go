package glob

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		yes, no string // paths, separated by spaces
	}{
		{"/w/**/.env", "/w/.env /w/a/.env /w/a/b/.env /w/.env/below", "/.env /x/.env /w/.envx /w/a.env /w"},
		{"/w/*.pem", "/w/a.pem /w/.pem /w/a.pem/x", "/w/a/b.pem /w/pem /w/a.pem2"},
		{"/w/**", "/w/a /w/a/b", "/w /x/w"},
		{"/w/**/x/**/y", "/w/x/y /w/a/x/b/y /w/x/x/y/y", "/w/x /w/y/x /w/a/y"},
		{"/w/**/**/x", "/w/x /w/a/b/x", "/w"},
		{"/**/x", "/x /a/b/x", "/ /y"},
		{"/w/a?c", "/w/abc /w/aüc /w/a.c", "/w/ac /w/a/c /w/abbc"},
		{"/w/[a-c]x", "/w/ax /w/cx", "/w/dx /w/-x /w/x"},
		{"/w/[!a-c]x", "/w/dx /w/-x /w/üx", "/w/ax /w/bx"},
		{"/w/[^a]", "/w/b", "/w/a"},
		{"/w/[]a]", "/w/] /w/a", "/w/b"},
		{"/w/[a-]", "/w/a /w/-", "/w/b"},
		{`/w/[\]]`, "/w/]", `/w/\`},
		{"/w/[ä-ü]", "/w/ö", "/w/o"},
		{`/w/\*`, "/w/*", "/w/a"},
		{`/w/\[x\]/*`, "/w/[x]/y", "/w/x/y"},
		{"/w/a*b*c", "/w/abc /w/aXbXc /w/abbcc", "/w/acb /w/ab"},
		{"/w/*/x", "/w/a/x /w/.a/x", "/w/x /w/a/b/x"},
		{"/w/x", "/w/x /w/x/y", "/w/xy /w"},
		{"/w\xfc/**/.env", "/w\xfc/.env /w\xfc/a\xff/.env", "/w/.env /w\xff/.env /w\ufffd/.env"},
		{"/w/\\*\xfc\\\\", "/w/*\xfc\\", "/w/*\xff\\"},
		{"/w/\xfc*/?", "/w/\xfcx/\xfe", "/w/x/\xfe"},
	} {
		g, err := Parse(tt.pattern)
		if err != nil {
			t.Errorf("%s: %v", tt.pattern, err)
			continue
		}
		for _, p := range strings.Fields(tt.yes) {
			if !g.Match(p) || !g.MayMatchBelow(path.Dir(p)) {
				t.Errorf("%s does not match %s", tt.pattern, p)
			}
		}
		for _, p := range strings.Fields(tt.no) {
			if g.Match(p) {
				t.Errorf("%s matches %s", tt.pattern, p)
			}
		}
	}
	for _, bad := range []string{"", "x", "/", "/a//b", "/a/../b", "/./a", "/[", "/[a", "/[!", "/[z-a]", "/a**", "/{a,b}", `/a\`, `/[\`} {
		if _, err := Parse(bad); err == nil {
			t.Errorf("Parse(%q) is no error", bad)
		}
	}
	g, _ := Parse("/w/src/*/x")
	for dir, want := range map[string]bool{"/": true, "/w": true, "/w/src": true, "/w/src/a": true, "/w/lib": false, "/x": false, "/w/src/a/y": false} {
		if got := g.MayMatchBelow(dir); got != want {
			t.Errorf("MayMatchBelow(%s) is %v", dir, got)
		}
	}
	if (Glob{}).Match("/") || (Glob{}).Match("/x") {
		t.Error("the zero Glob matches")
	}
}

func TestMatchName(t *testing.T) {
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{"A*", "AB/C", true}, {"*C", "AB/C", true}, {"A?/[A-C]", "AB/C", true}, {"A?C", "A/C", true}, {"*/*", "A", false}, {"[", "[", false}, {"a", "a", true},
	} {
		if got := MatchName(tt.glob, tt.name); got != tt.want {
			t.Errorf("%q and %q: %v", tt.glob, tt.name, got)
		}
	}
}

// globRegexp translates a pattern to a regular expression: the oracle of FuzzGlob. It knows only
// what Parse accepts.
func globRegexp(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("(?s)^")
	segs := strings.Split(pattern[1:], "/")
	for i, seg := range segs {
		if seg == "**" {
			if i == len(segs)-1 {
				b.WriteString("/[^/]+")
			} else {
				b.WriteString("(?:/[^/]+)*")
			}
			continue
		}
		b.WriteString("/")
		for rest := seg; rest != ""; {
			tok, after, err := nextPart(rest)
			if err != nil {
				return nil
			}
			switch {
			case tok.star:
				b.WriteString("[^/]*")
			case tok.any:
				b.WriteString("[^/]")
			case tok.class != nil:
				b.WriteString("[")
				if tok.negate {
					b.WriteString("^/")
				}
				for _, c := range tok.class {
					if c[0] < '/' && '/' < c[1] { // no name has a slash
						b.WriteString(quoteRune(c[0]) + "-.0-" + quoteRune(max(c[1], '0')))
						continue
					}
					b.WriteString(quoteRune(c[0]) + "-" + quoteRune(c[1]))
				}
				b.WriteString("]")
			default:
				b.WriteString(quoteRune(tok.r))
			}
			rest = after
		}
	}
	b.WriteString("(?:/.*)?$")
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil
	}
	return re
}

// part matches one character, r unless another field is set, or any number of them.
type part struct {
	star, any, negate bool
	class             [][2]rune
	r                 rune
}

// nextPart reads the first part of a name's pattern.
func nextPart(s string) (p part, rest string, err error) {
	switch s[0] {
	case '*':
		return part{star: true}, s[1:], nil
	case '?':
		return part{any: true}, s[1:], nil
	case '[':
		s = s[1:]
	default:
		p.r, rest, err = char(s)
		return p, rest, err
	}
	p.negate = s[0] == '!' || s[0] == '^'
	if p.negate {
		s = s[1:]
	}
	for len(p.class) == 0 || s[0] != ']' {
		var lo, hi rune
		lo, s, _ = char(s)
		hi = lo
		if s[0] == '-' && s[1] != ']' {
			hi, s, _ = char(s[1:])
		}
		p.class = append(p.class, [2]rune{lo, hi})
	}
	return p, s[1:], nil
}

func quoteRune(r rune) string {
	if r < 0x80 && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z') {
		const hex = "0123456789abcdef"
		return `\x` + string([]byte{hex[r>>4], hex[r&15]})
	}
	return string(r)
}

// FuzzGlob compares the matcher with a regular expression of the same meaning, and checks that
// MayMatchBelow never skips a match.
func FuzzGlob(f *testing.F) {
	for _, seed := range [][2]string{
		{"/w/**/.env", "/w/a/.env"}, {"/a*b?[c-e]/**", "/aXbYd/z"}, {"/**/x/**/y/*", "/x/x/y/y/z"}, {`/\*[!a\]]`, "/*b"},
		{"/*a*a*a*a*b", "/aaaaaaaaaaaaaaaaaaaaaaaaaa"}, {"/**/**/**/**/b", "/a/a/a/a/a/a/a/a"}, {"/[]-a]", "/]"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		g, err := Parse(pattern)
		if err != nil || !strings.HasPrefix(name, "/") || path.Clean(name) != name || len(pattern)+len(name) > 500 {
			return
		}
		got := g.Match(name)
		for dir := path.Dir(name); got; dir = path.Dir(dir) {
			if !g.MayMatchBelow(dir) {
				t.Errorf("%q matches %q, but nothing below %q", pattern, name, dir)
			}
			if dir == "/" {
				break
			}
		}
		if re := globRegexp(pattern); re != nil && name != "/" && validText(pattern) && validText(name) {
			if want := re.MatchString(name); got != want {
				t.Errorf("%q matches %q: %v, %v says %v", pattern, name, got, re, want)
			}
		}
	})
}

// validText reports text on which the matcher and package regexp agree what a
// character is.
func validText(s string) bool {
	return strings.ToValidUTF8(s, "") == s && !strings.ContainsRune(s, '\uFFFD')
}
