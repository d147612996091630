package enforce

import (
	"path"
	"strings"
)

// includes protects what a git configuration includes (git-config(1),
// "Includes"), in writable trees: git takes it for part of the configuration,
// whether the condition of an includeIf holds now or later.
func (c *protector) includes(config string) {
	read := "include " + config // no path
	st, err := c.host.Lstat(config)
	if err != nil || !st.Mode.IsRegular() || c.seen[read] {
		return
	}
	c.seen[read] = true
	data, err := c.host.ReadFile(config)
	if err != nil {
		return
	}
	for _, name := range includedPaths(string(data)) {
		if rest, ok := strings.CutPrefix(name, "~/"); ok && c.home != "" {
			name = path.Join(c.home, rest)
		}
		if !path.IsAbs(name) {
			name = path.Join(path.Dir(config), name)
		}
		dir, _, err := c.host.RealPath(path.Dir(name))
		if err != nil {
			continue // git passes it over, too
		}
		if name = path.Join(dir, path.Base(name)); c.writable(name) {
			c.add(name, "")
		}
		if real, _, err := c.host.RealPath(name); err == nil {
			c.includes(real)
		}
	}
}

// includedPaths are the values of include.path and includeIf.*.path. What
// continues on another line is not read.
func includedPaths(config string) []string {
	var out []string
	in := false
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			header, rest := sectionHeader(line)
			name, _, _ := strings.Cut(header, " ")
			in, line = strings.EqualFold(name, "include") || strings.EqualFold(name, "includeIf"), rest
		}
		key, value, ok := strings.Cut(line, "=")
		if !in || !ok || !strings.EqualFold(strings.TrimSpace(key), "path") {
			continue
		}
		if value = configValue(value); value != "" {
			out = append(out, value)
		}
	}
	return out
}

// sectionHeader cuts a line that begins with "[" behind its "]". A quoted part
// may have one, too.
func sectionHeader(line string) (header, rest string) {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case ']':
			if !quoted {
				return strings.TrimSpace(line[1:i]), line[i+1:]
			}
		}
	}
	return "", ""
}

// configValue reads a value with its quotes, escapes and comment.
func configValue(s string) string {
	var b strings.Builder
	quoted := false
	s = strings.TrimSpace(s)
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; {
		case ch == '"':
			quoted = !quoted
		case ch == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
		case (ch == '#' || ch == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(ch)
		}
	}
	return strings.TrimSpace(b.String())
}
