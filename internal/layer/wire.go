package layer

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// exact is a text of any bytes. As JSON it is itself, or quoted as in Go if JSON can't have it.
type exact string

func (e exact) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(e)) && !strings.HasPrefix(string(e), `"`) {
		return []byte(e), nil
	}
	return []byte(strconv.Quote(string(e))), nil
}

func (e *exact) UnmarshalText(b []byte) error {
	if !strings.HasPrefix(string(b), `"`) {
		*e = exact(b)
		return nil
	}
	s, err := strconv.Unquote(string(b))
	*e = exact(s)
	return err
}

// record is a Record as JSON.
type record struct {
	Record

	Command []exact
	Dir     exact
	Trees   []tree

	Protected []exact
}

type tree struct {
	Tree

	Path exact
}

func wireRecord(r *Record) *record {
	w := &record{Record: *r, Dir: exact(r.Dir)}
	for _, word := range r.Command {
		w.Command = append(w.Command, exact(word))
	}
	for _, t := range r.Trees {
		w.Trees = append(w.Trees, tree{t, exact(t.Path)})
	}
	for _, p := range r.Protected {
		w.Protected = append(w.Protected, exact(p))
	}
	return w
}

func (w *record) plain() Record {
	r := w.Record
	r.Dir = string(w.Dir)
	for _, word := range w.Command {
		r.Command = append(r.Command, string(word))
	}
	for _, t := range w.Trees {
		t.Tree.Path = string(t.Path)
		r.Trees = append(r.Trees, t.Tree)
	}
	for _, p := range w.Protected {
		r.Protected = append(r.Protected, string(p))
	}
	return r
}

// change is a Change as JSON.
type change struct {
	Change

	Path exact
}

// seen is what Freeze writes.
type seen struct {
	Version int
	Gone    []bool // trees that were not there
	Changes []change
}
