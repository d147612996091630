package gitconfig

import "strings"

// Setting is one line of a configuration.
type Setting struct {
	Section string // in lower case, without a subsection: "remote"
	Sub     string // what follows the section's name, as it is written; "" for nothing
	Key     string // in lower case
	Value   string // "" for none
}

// Includes reports whether git takes the file that the value names for a part of the
// configuration (git-config(1), "Includes"), under a condition or not.
func (s *Setting) Includes() bool {
	return (s.Section == "include" || s.Section == "includeif") && s.Key == "path" && s.Value != ""
}

// Read returns the settings of a configuration, and the number of the first line that git
// does not understand, or 0. Where git would give up, Read goes on with the next line.
func Read(text string) ([]Setting, int) {
	r := &reader{text: strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")}
	for r.at < len(r.text) {
		line := r.at
		if !r.item() {
			if r.bad == 0 {
				r.bad = 1 + strings.Count(r.text[:line], "\n")
			}
			r.skipLine()
		}
	}
	return r.out, r.bad
}

// reader reads a configuration as git does, character by character ("Syntax" of
// git-config(1)): a value may go on in the next line, and a section may begin in the
// middle of a line.
type reader struct {
	text string
	at   int
	in   Setting // the section
	out  []Setting
	bad  int // the first line that can't be read, 0 for none
}

// next returns the next character, or a newline at the end.
func (r *reader) next() byte {
	if r.at++; r.at > len(r.text) {
		return '\n'
	}
	return r.text[r.at-1]
}

// skipLine goes to the end of the line, unless the last character ended it.
func (r *reader) skipLine() {
	if r.at > len(r.text) || r.at > 0 && r.text[r.at-1] == '\n' {
		return
	}
	for r.next() != '\n' {
	}
}

// item reads a section's name, a variable, a comment or white space. It returns false for
// what git does not understand.
func (r *reader) item() bool {
	switch ch := r.next(); {
	case ch == '[':
		return r.section()
	case isKey(ch) && ch > '9':
		return r.variable()
	case ch == '#' || ch == ';':
		r.skipLine()
	default:
		return isSpace(ch)
	}
	return true
}

func isSpace(ch byte) bool { return strings.IndexByte(" \t\n\r", ch) >= 0 }

func isKey(ch byte) bool {
	return 'a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z' || '0' <= ch && ch <= '9' || ch == '-'
}

// section reads the name of a section, after its bracket.
func (r *reader) section() bool {
	start, quoted := r.at, false
	r.in = Setting{}
	for {
		ch := r.next()
		switch {
		case ch == '\n':
			return false
		case ch == '\\' && quoted:
			if r.next() == '\n' {
				return false
			}
		case ch == '"':
			quoted = !quoted
		case ch == ']' && !quoted:
			name := r.text[start : r.at-1]
			if i := strings.IndexAny(name, " \t\v\f\r.\""); i >= 0 {
				name, r.in.Sub = name[:i], name[i:]
			}
			r.in.Section = strings.ToLower(name)
			return true
		}
	}
}

// variable reads a variable whose first letter was read, with its value.
func (r *reader) variable() bool {
	start := r.at - 1
	ch := r.next()
	for isKey(ch) {
		ch = r.next()
	}
	s := r.in
	s.Key = strings.ToLower(r.text[start : r.at-1])
	for ch == ' ' || ch == '\t' {
		ch = r.next()
	}
	ok := ch == '\n' // no value
	if ch == '=' {
		s.Value, ok = r.value()
	}
	if ok {
		r.out = append(r.out, s)
	}
	return ok
}

// value reads a value with its quotes, escapes, comment and continuation lines.
func (r *reader) value() (value string, ok bool) {
	var b strings.Builder
	quoted, end := false, 0
	for {
		ch := r.next()
		switch {
		case ch == '\n':
			return b.String()[:end], !quoted
		case isSpace(ch) && !quoted:
			if b.Len() > 0 {
				b.WriteByte(ch)
			}
			continue
		case (ch == '#' || ch == ';') && !quoted:
			r.skipLine()
			return b.String()[:end], true
		case ch == '"':
			quoted, end = !quoted, b.Len()
			continue
		case ch == '\\':
			if ch = r.next(); ch == '\n' {
				end = b.Len()
				continue
			}
			i := strings.IndexByte(`tbn\"`, ch)
			if i < 0 {
				return "", false
			}
			ch = "\t\b\n\\\""[i]
		}
		b.WriteByte(ch)
		end = b.Len()
	}
}
