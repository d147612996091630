package tables

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

var (
	//go:embed baseline.txt
	baseline string
	//go:embed env.txt
	env string
	//go:embed guard.txt
	guard string
	//go:embed places.txt
	places string
	//go:embed presets.txt
	presets string
	//go:embed secrets.txt
	secrets string
)

// The tables. Each is read once, by whoever asks for it first, and is not to be
// changed.
var (
	Baseline = sync.OnceValue(func() []Section { return Read(baseline) })
	Env      = sync.OnceValue(func() []Section { return Read(env) })
	Guard    = sync.OnceValue(func() []Section { return Read(guard) })
	Places   = sync.OnceValue(func() []Section { return Read(places) })
	Presets  = sync.OnceValue(func() []Section { return Read(presets) })
	Secrets  = sync.OnceValue(func() []Section { return Read(secrets) })
)

// Section is a part of a table: a line "[Name] Note", and below it entries that
// commas or ends of lines separate. A line "KEY: ..." has the entries of that key.
type Section struct {
	Name, Note string
	Entries    []string // of lines without a key
	Keys       []Key    // the others, in the order of their lines
}

// Key is a line with a key.
type Key struct {
	Name    string
	Entries []string
}

// Key is the entries of a key, nil for none.
func (s *Section) Key(name string) []string {
	for i := range s.Keys {
		if s.Keys[i].Name == name {
			return s.Keys[i].Entries
		}
	}
	return nil
}

// Find is the entries of a section, nil for none.
func Find(table []Section, name string) []string {
	for i := range table {
		if table[i].Name == name {
			return table[i].Entries
		}
	}
	return nil
}

// Read reads a table. Empty lines and those that begin with "#" say nothing. All
// entries are in one piece of memory, and all keys: every start reads some tables.
func Read(text string) []Section {
	all := make([]Section, 0, strings.Count(text, "["))
	entries := make([]string, 0, strings.Count(text, ",")+strings.Count(text, "\n"))
	keys := make([]Key, 0, strings.Count(text, ":"))
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '[' {
			name, note, _ := strings.Cut(line[1:], "]")
			all = append(all, Section{Name: name, Note: strings.TrimSpace(note)})
			continue
		}
		s, from := &all[len(all)-1], len(entries)
		key, list, ok := strings.Cut(line, ": ")
		if !ok {
			entries = split(entries, line)
			s.Entries = join(s.Entries, entries[from:])
			continue
		}
		entries = split(entries, list)
		keys = append(keys, Key{key, entries[from:len(entries):len(entries)]})
		s.Keys = join(s.Keys, keys[len(keys)-1:])
	}
	for i := range all {
		all[i].Entries, all[i].Keys = slices.Clip(all[i].Entries), slices.Clip(all[i].Keys)
	}
	return all
}

// join is append, but that what follows in memory already is not copied.
func join[T any](list, more []T) []T {
	n := len(list)
	if n == 0 {
		return more
	}
	if cap(list) >= n+len(more) && len(more) > 0 && &list[:n+1][n] == &more[0] {
		return list[:n+len(more)]
	}
	return append(list[:n:n], more...)
}

// split adds the entries of a line.
func split(list []string, line string) []string {
	for line != "" {
		var entry string
		entry, line, _ = strings.Cut(line, ",")
		list = append(list, strings.TrimSpace(entry))
		line = strings.TrimLeft(line, " ")
	}
	return list
}
