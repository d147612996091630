package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Limit bounds the group. A controller that its parent has not given it is switched on
// there, which changes nothing for the groups beside it: they have no limits. The
// kernel refuses it where the parent has processes of its own (cgroups(7), "no
// internal processes"), or has none itself.
func (g *Group) Limit(l Limits) error {
	parent := &Group{Path: filepath.Dir(g.Path)}
	for _, s := range l.settings() {
		off := parent.Write("cgroup.subtree_control", "+"+s.controller) // who may not switch it may find it on
		if err := g.Write(s.file, s.text); err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("the controller for %s: %w", s.controller, cmp.Or(off, err))
		}
	}
	return nil
}

// limited makes sure that somebody else has bounded the group.
func (g *Group) limited(l Limits) error {
	for _, s := range l.settings() {
		now := g.read(s.file)
		if !s.optional && now == "" || strings.HasPrefix(now, "max") {
			return fmt.Errorf("the user's service manager does not bound %s", s.controller)
		}
	}
	return nil
}
