package layer

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// seen is what Freeze writes.
type seen struct {
	Version int
	Gone    []bool // trees that were not there
	Changes []Change
	Touched []Touched
}

// quoted writes a text of any bytes so that JSON keeps them: as it is, or quoted as in Go.
func quoted(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, `"`) {
		return s
	}
	return strconv.Quote(s)
}

// unquote returns a function that reads what quoted wrote. The first error goes to err.
func unquote(err *error) func(string) string {
	return func(s string) string {
		if !strings.HasPrefix(s, `"`) {
			return s
		}
		text, bad := strconv.Unquote(s)
		*err = cmp.Or(*err, bad)
		return text
	}
}

// withTexts returns a record in which f has changed all texts that may have any bytes.
func (r Record) withTexts(f func(string) string) Record {
	r.Dir = f(r.Dir)
	r.Trees = slices.Clone(r.Trees)
	for i := range r.Trees {
		r.Trees[i].Path = f(r.Trees[i].Path)
	}
	for _, list := range []*[]string{&r.Command, &r.Protected, &r.Denied} {
		changed := slices.Clone(*list)
		for i, text := range changed {
			changed[i] = f(text)
		}
		*list = changed
	}
	return r
}

// readRecord reads a Record that Make wrote.
func readRecord(b []byte) (Record, error) {
	var r Record
	err := json.Unmarshal(b, &r)
	r = r.withTexts(unquote(&err))
	return r, err
}

// changeTexts replaces all texts that may have any bytes.
func (s *seen) changeTexts(f func(string) string) {
	for i := range s.Changes {
		s.Changes[i].Path = f(s.Changes[i].Path)
	}
	for i := range s.Touched {
		s.Touched[i].Path = f(s.Touched[i].Path)
	}
}

// readSeen reads what Freeze wrote.
func readSeen(b []byte) (*seen, error) {
	s := &seen{}
	err := json.Unmarshal(b, s)
	s.changeTexts(unquote(&err))
	return s, err
}
