package layer

import (
	"errors"
	"fmt"
	"slices"
)

const declinedFile = "declined" // in a layer, once a conflict was decided for the tree

// declined is what Decline writes.
type declined struct {
	Version int
	Places  []spot
}

// spot is where a change is.
type spot struct {
	Tree int
	Path string // as Change.Path, quoted
}

// Decline notes that changes are not to be made, as somebody has decided. Changes does not return them any more.
func (l *Layer) Decline(changes []Change) error {
	d, err := l.readDeclined()
	if err != nil {
		return err
	}
	for i := range changes {
		d.Places = append(d.Places, spot{changes[i].Tree, quoted(changes[i].Path)})
	}
	return l.Save(declinedFile, &d)
}

func (l *Layer) readDeclined() (d declined, err error) {
	d.Version = recordVersion
	err = l.Load(declinedFile, &d)
	if err == nil && d.Version != recordVersion {
		err = errors.New("another version of zsbx wrote it")
	}
	if err != nil {
		err = fmt.Errorf("layer %s: what was decided about it: %w", l.Session, err)
	}
	return d, err
}

// markDeclined marks the changes that Decline has noted.
func (l *Layer) markDeclined(all []Change) error {
	d, err := l.readDeclined()
	if err != nil || d.Places == nil {
		return err
	}
	at := make(map[spot]bool)
	for _, p := range d.Places {
		at[p] = true
	}
	for i := range all {
		all[i].Declined = at[spot{all[i].Tree, quoted(all[i].Path)}]
	}
	return nil
}

// Changes returns all changes that may be made, sorted by trees and names, a directory before what is in it. What
// the trees have by now is left out, as after a part was applied. Before Freeze it returns what can be seen so far.
func (l *Layer) Changes() ([]Change, error) {
	all, _, err := l.Everything()
	return slices.DeleteFunc(all, func(c Change) bool { return c.Declined }), err
}
