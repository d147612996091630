package policy

import "strings"

// Within reports whether p is dir or lies below it.
func Within(p, dir string) bool {
	if dir == "/" {
		return strings.HasPrefix(p, "/")
	}
	rest, ok := strings.CutPrefix(p, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// Short writes a canonical path as a rule may: from the working directory, or the
// home directory.
func (r *Resolved) Short(p string) string {
	switch {
	case p == r.Dir:
		return "."
	case r.Dir != "/" && Within(p, r.Dir):
		p = "./" + p[len(r.Dir)+1:]
	case r.Home != "" && r.Home != "/" && p != r.Home && Within(p, r.Home):
		p = "~" + p[len(r.Home):]
	}
	return strings.ReplaceAll(p, "$", "$$")
}
