package policy

import "strings"

// expandDefault replaces every ${NAME:-word} in a path: by the first absolute
// path in the variable's value, or by word, which may hold such references
// again. All else, "~" and "$NAME" included, is left for the expansion that
// follows. A value that is no absolute path counts as unset: tools refuse
// such values ("GOCACHE=off") or read them relative to a directory that is
// not known here.
func expandDefault(h *Host, s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		end := closingBrace(s, i+2)
		if end < 0 {
			break
		}
		name, word, ok := strings.Cut(s[i+2:end], ":-")
		if !ok || strings.ContainsAny(name, "${}") {
			b.WriteString(s[:end+1])
			s = s[end+1:]
			continue
		}
		b.WriteString(s[:i])
		if v := firstAbsolute(h.Getenv(name)); v != "" {
			b.WriteString(v)
		} else {
			b.WriteString(expandDefault(h, word))
		}
		s = s[end+1:]
	}
	b.WriteString(s)
	return b.String()
}

// closingBrace is the index of the brace that closes the one before from, or
// -1 where there is none.
func closingBrace(s string, from int) int {
	depth := 1
	for i := from; i < len(s); i++ {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// firstAbsolute is the first element of a colon-separated list when it is an
// absolute path, otherwise "". GOPATH is such a list; go writes to its first
// element only.
func firstAbsolute(list string) string {
	first, _, _ := strings.Cut(list, ":")
	if !strings.HasPrefix(first, "/") {
		return ""
	}
	return strings.TrimRight(first, "/")
}

// Getenv is the value of a variable in the caller's environment, or "". Of
// two with one name the first counts, as for getenv(3).
func (h *Host) Getenv(name string) string {
	for _, e := range h.Env {
		if len(e) > len(name) && e[len(name)] == '=' && e[:len(name)] == name {
			return e[len(name)+1:]
		}
	}
	return ""
}
