package tables

import "strings"

// Section is a part of a table: a line "[Name] Note", and below it entries that
// commas or ends of lines separate. A line "KEY: ..." has the entries of that key.
type Section struct {
	Name, Note string
	Entries    []string // of lines without a key
	Keys       []Key    // the others, in the order of their lines
}

type Key struct {
	Name    string
	Entries []string
}

// Key returns the entries of a key, or nil.
func (s *Section) Key(name string) []string {
	for i := range s.Keys {
		if s.Keys[i].Name == name {
			return s.Keys[i].Entries
		}
	}
	return nil
}

// Find returns the entries of a section, or nil.
func Find(table []Section, name string) []string {
	for i := range table {
		if table[i].Name == name {
			return table[i].Entries
		}
	}
	return nil
}

// Matches reports whether an entry stands for a name. A final "*" in it stands for any ending.
func Matches(entry, name string) bool {
	start, any := strings.CutSuffix(entry, "*")
	return entry == name || any && strings.HasPrefix(name, start)
}

// Read reads a table. Empty lines and those that begin with "#" are skipped.
func Read(text string) []Section {
	if !strings.HasPrefix(text, "[") {
		_, text, _ = strings.Cut(text, "\n[")
	}
	all := make([]Section, 0, 1+strings.Count(text, "\n["))
	for part := range strings.SplitSeq(text, "\n[") {
		head, lines, _ := strings.Cut(part, "\n")
		name, note, _ := strings.Cut(strings.TrimPrefix(head, "["), "]")
		s := Section{Name: name, Note: strings.TrimSpace(note)}
		for line := range strings.SplitSeq(lines, "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			key, list, ok := strings.Cut(line, ": ")
			switch {
			case ok:
				s.Keys = append(s.Keys, Key{key, split(make([]string, 0, 1+strings.Count(list, ",")), list)})
			case s.Entries == nil:
				s.Entries = make([]string, 0, strings.Count(lines, ",")+strings.Count(lines, "\n"))
				fallthrough
			default:
				s.Entries = split(s.Entries, line)
			}
		}
		all = append(all, s)
	}
	return all
}

// split adds the entries of a line.
func split(list []string, line string) []string {
	for entry := range strings.SplitSeq(strings.TrimSuffix(line, ","), ",") {
		list = append(list, strings.TrimSpace(entry))
	}
	return list
}
