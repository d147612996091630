package gitconfig

import "strings"

// Setting is one line of a configuration.
type Setting struct {
	Section string // in lower case, without a subsection: "remote"
	Sub     string // what follows the section's name, as it is written; "" for nothing
	Key     string // in lower case
	Value   string // "" for none

	// Older is the value as git before 2.45 reads it, which takes unquoted white space for
	// blanks.
	Older string
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
	r.at++
	if r.at > len(r.text) {
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
	start := r.at
	quoted := false
	r.in = Setting{}
	for {
		switch r.next() {
		case '\n':
			return false
		case '\\':
			if quoted && r.next() == '\n' {
				return false
			}
		case '"':
			quoted = !quoted
		case ']':
			if !quoted {
				r.enter(r.text[start : r.at-1])
				return true
			}
		}
	}
}

// enter begins the section with this name, which may be followed by a subsection.
func (r *reader) enter(name string) {
	if i := strings.IndexAny(name, " \t\v\f\r.\""); i >= 0 {
		r.in.Sub = name[i:]
		name = name[:i]
	}
	r.in.Section = strings.ToLower(name)
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
		s.Value, s.Older, ok = r.value()
	}
	if ok {
		r.out = append(r.out, s)
	}
	return ok
}

// value reads a value with its quotes, escapes, comment and continuation lines. In older, other
// white space outside quotes is a blank.
func (r *reader) value() (value, older string, ok bool) {
	var b []byte
	var blanks []int // where b has white space outside quotes that is no blank
	quoted := false
	end := 0
	result := func() (value, older string) {
		value = string(b[:end])
		for _, i := range blanks {
			b[i] = ' '
		}
		return value, string(b[:end])
	}
	for {
		ch := r.next()
		if ch == '\n' {
			value, older = result()
			return value, older, !quoted
		}
		if ch == '"' {
			quoted = !quoted
			end = len(b)
			continue
		}
		if !quoted && (ch == '#' || ch == ';') {
			r.skipLine()
			value, older = result()
			return value, older, true
		}
		if !quoted && isSpace(ch) {
			if len(b) > 0 {
				if ch != ' ' {
					blanks = append(blanks, len(b))
				}
				b = append(b, ch)
			}
			continue // white space at the end does not count
		}
		if ch == '\\' {
			ch = r.next()
			if ch == '\n' {
				end = len(b)
				continue
			}
			i := strings.IndexByte(`tbn\"`, ch)
			if i < 0 {
				return "", "", false
			}
			ch = "\t\b\n\\\""[i]
		}
		b = append(b, ch)
		end = len(b)
	}
}

// Values returns the values that a version of git may read: one, or two if they differ.
func (s *Setting) Values() []string {
	if s.Older == s.Value {
		return []string{s.Value}
	}
	return []string{s.Value, s.Older}
}
