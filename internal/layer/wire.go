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

// unquoted reads what quoted wrote.
func unquoted(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	return strconv.Unquote(s)
}

// withTexts returns a record in which f has changed all texts that may have any bytes.
func (r Record) withTexts(f func(string) string) Record {
	r.Dir = f(r.Dir)
	r.Command = slices.Clone(r.Command)
	for i := range r.Command {
		r.Command[i] = f(r.Command[i])
	}
	r.Trees = slices.Clone(r.Trees)
	for i := range r.Trees {
		r.Trees[i].Path = f(r.Trees[i].Path)
	}
	r.Protected = slices.Clone(r.Protected)
	for i := range r.Protected {
		r.Protected[i] = f(r.Protected[i])
	}
	r.Denied = slices.Clone(r.Denied)
	for i := range r.Denied {
		r.Denied[i] = f(r.Denied[i])
	}
	return r
}

// readRecord reads a Record that Make wrote.
func readRecord(b []byte) (Record, error) {
	var r Record
	err := json.Unmarshal(b, &r)
	r = r.withTexts(func(s string) string {
		text, bad := unquoted(s)
		err = cmp.Or(err, bad)
		return text
	})
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
	s.changeTexts(func(text string) string {
		text, bad := unquoted(text)
		err = cmp.Or(err, bad)
		return text
	})
	return s, err
}
