package tables

import (
	_ "embed"
	"strings"
	"sync"
)

var (
	//go:embed baseline.txt
	baseline string
	//go:embed env.txt
	env string
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
	Baseline = sync.OnceValue(func() []Section { return read(baseline) })
	Env      = sync.OnceValue(func() []Section { return read(env) })
	Places   = sync.OnceValue(func() []Section { return read(places) })
	Presets  = sync.OnceValue(func() []Section { return read(presets) })
	Secrets  = sync.OnceValue(func() []Section { return read(secrets) })
)

// Section is a part of a table: a line "[Name] Note", and below it entries that
// commas or ends of lines separate. A line "KEY: ..." has the entries of that key.
type Section struct {
	Name, Note string
	Entries    []string            // of lines without a key
	Keys       map[string][]string // of the others; nil for none
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

// read reads a table. Empty lines and those that begin with "#" say nothing.
func read(text string) []Section {
	all := make([]Section, 0, strings.Count(text, "\n["))
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
		s := &all[len(all)-1]
		key, list, ok := strings.Cut(line, ": ")
		if !ok {
			s.Entries = split(s.Entries, line)
			continue
		}
		if s.Keys == nil {
			s.Keys = make(map[string][]string, 4)
		}
		s.Keys[key] = split(nil, list)
	}
	return all
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
