package protect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// includes protects what a git configuration includes (git-config(1),
// "Includes"), in writable trees: git takes it for part of the configuration,
// whether the condition of an includeIf holds now or later. A relative path is
// taken from the directory of the configuration as it is named, through links.
func (c *protector) includes(config string) {
	read := "include " + config // no path
	if c.seen[read] {
		return
	}
	c.seen[read] = true
	real, st, err := c.host.RealPath(config)
	if err != nil || !st.Mode.IsRegular() {
		return
	}
	data, err := c.host.ReadFile(real)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
		return // the user's git can't read it either
	}
	if err != nil {
		c.unread(config, err.Error())
		return
	}
	names, bad := includedPaths(string(data))
	for _, name := range names {
		c.include(config, name)
	}
	if bad > 0 {
		c.unread(config, fmt.Sprintf("line %d is not what git-config(1) allows", bad))
	}
}

// include protects one file that a configuration names. Its ".." are the file
// system's, behind links.
func (c *protector) include(config, name string) {
	if rest, ok := strings.CutPrefix(name, "~/"); ok && c.home != "" {
		name = c.home + "/" + rest
	}
	switch {
	case strings.HasPrefix(name, "~"):
		c.unread(config, fmt.Sprintf("it includes %q in another user's home, which was not looked up", name))
		return
	case strings.HasPrefix(name, "%(prefix)/"):
		return // where git is installed
	case !path.IsAbs(name):
		name = path.Dir(config) + "/" + name
	}
	i := strings.LastIndexByte(name, '/')
	base := name[i+1:]
	if base == "" || base == "." || base == ".." {
		return // a directory
	}
	dir, _, _, err := c.host.Trail(name[:i])
	var missing *fs.PathError
	if errors.As(err, &missing) && errors.Is(err, fs.ErrNotExist) {
		if c.writable(missing.Path) { // it may become a directory, or a link to one
			c.watchOnly(missing.Path)
		}
	} else if err != nil {
		return // git passes it over, too
	}
	if name = path.Join(dir, base); c.writable(name) {
		c.add(name, c.within(name))
	}
	if real, _, err := c.host.RealPath(name); err == nil {
		c.includes(name)
		c.includes(real) // as other programs than git may see it
	}
}

// unread is a configuration whose includes are not all known.
type unread struct{ Config, Why string }

func (c *protector) unread(config, why string) {
	c.out.Unread = append(c.out.Unread, unread{config, why})
}

// configReader reads a git configuration as git does, character by character
// ("Syntax" of git-config(1)): a value may go on in the next line, a section may
// begin in the middle of one. Where git gives up, it goes on with the next line.
type configReader struct {
	text    string
	at      int
	include bool // in a section of this kind
	out     []string
	bad     int // the first line that can't be read, 0 for none
}

// includedPaths are the values of include.path and includeIf.*.path, and the
// number of the first line that can't be read, 0 for none.
func includedPaths(config string) ([]string, int) {
	r := &configReader{text: strings.TrimPrefix(config, "\uFEFF")}
	for r.at < len(r.text) {
		line := r.at
		if !r.item() {
			if r.bad == 0 {
				r.bad = 1 + strings.Count(r.text[:min(line, len(r.text))], "\n")
			}
			r.skipLine()
		}
	}
	return r.out, r.bad
}

// next is the next character, a newline at the end, and in place of CR LF.
func (r *configReader) next() byte {
	if r.at >= len(r.text) {
		r.at++
		return '\n'
	}
	ch := r.text[r.at]
	r.at++
	if ch == '\r' && r.at < len(r.text) && r.text[r.at] == '\n' {
		r.at++
		return '\n'
	}
	return ch
}

// skipLine goes to the end of the line, unless the last character ended it.
func (r *configReader) skipLine() {
	if r.at > len(r.text) || r.at > 0 && r.text[r.at-1] == '\n' {
		return
	}
	for r.next() != '\n' {
	}
}

// item reads a section's name, a variable, a comment or white space. It is
// false for what git does not understand.
func (r *configReader) item() bool {
	switch ch := r.next(); {
	case isConfigSpace(ch):
		return true
	case ch == '#' || ch == ';':
		r.skipLine()
		return true
	case ch == '[':
		return r.section()
	case isConfigKey(ch) && ch > '9':
		return r.variable()
	}
	return false
}

func isConfigSpace(ch byte) bool { return strings.IndexByte(" \t\n\r\v\f", ch) >= 0 }

func isConfigKey(ch byte) bool {
	return 'a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z' || '0' <= ch && ch <= '9' || ch == '-'
}

// section reads the name of a section, behind its bracket. Of includeIf the
// condition does not count.
func (r *configReader) section() bool {
	start, quoted := r.at, false
	r.include = false
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
			name := strings.ToLower(r.text[start : r.at-1])
			if i := strings.IndexAny(name, " \t\v\f\r.\""); i >= 0 {
				name = name[:i]
			}
			r.include = name == "include" || name == "includeif"
			return true
		}
	}
}

// variable reads a variable whose first letter was read, with its value.
func (r *configReader) variable() bool {
	start := r.at - 1
	ch := r.next()
	for isConfigKey(ch) {
		ch = r.next()
	}
	name := r.text[start:min(r.at-1, len(r.text))]
	for ch == ' ' || ch == '\t' {
		ch = r.next()
	}
	if ch == '\n' {
		return true // no value
	}
	if ch != '=' {
		return false
	}
	value, older, ok := r.value()
	if ok && value != "" && r.include && strings.EqualFold(strings.TrimRight(name, "\r"), "path") {
		if r.out = append(r.out, value); older != value {
			r.out = append(r.out, older)
		}
	}
	return ok
}

// value reads a value with its quotes, escapes, comment and the lines on which
// it goes on. For older versions of git all white space in it is blanks.
func (r *configReader) value() (value, older string, ok bool) {
	var b, blanks strings.Builder
	quoted, end := false, 0
	for {
		ch := r.next()
		switch {
		case ch == '\n':
			return b.String()[:end], blanks.String()[:end], !quoted
		case isConfigSpace(ch) && !quoted:
			if end > 0 {
				b.WriteByte(ch)
				blanks.WriteByte(' ')
			}
			continue
		case (ch == '#' || ch == ';') && !quoted:
			r.skipLine()
			return b.String()[:end], blanks.String()[:end], true
		case ch == '"':
			quoted = !quoted
			continue
		case ch == '\\':
			if ch = r.next(); ch == '\n' {
				continue
			}
			i := strings.IndexByte(`tbn\"`, ch)
			if i < 0 {
				return "", "", false
			}
			ch = "\t\b\n\\\""[i]
		}
		b.WriteByte(ch)
		blanks.WriteByte(ch)
		end = b.Len()
	}
}
