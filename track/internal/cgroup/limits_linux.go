package cgroup

import (
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
		err := g.Write(s.file, s.text)
		missing := errors.Is(err, fs.ErrNotExist)
		if missing && !s.optional {
			if err = parent.Write("cgroup.subtree_control", "+"+s.controller); err == nil {
				err = g.Write(s.file, s.text)
			}
		}
		if err != nil && !(s.optional && missing) {
			return fmt.Errorf("the controller for %s: %w", s.controller, err)
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
