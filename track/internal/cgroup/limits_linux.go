package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Limit bounds the group. What its parent has no controller for is switched on
// there, which changes nothing for the groups beside it: they have no limits.
func (g *Group) Limit(l Limits) error {
	for _, s := range l.settings() {
		err := g.Write(s.file, s.text)
		if errors.Is(err, fs.ErrNotExist) && !s.optional {
			if err = g.enable(s.controller); err == nil {
				err = g.Write(s.file, s.text)
			}
		}
		if err != nil && !(s.optional && errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// enable switches a controller on for the groups beside this one. The kernel
// refuses it where the parent has processes of its own (cgroups(7), "no
// internal processes").
func (g *Group) enable(controller string) error {
	parent := &Group{Path: filepath.Dir(g.Path)}
	if !slices.Contains(strings.Fields(parent.read("cgroup.controllers")), controller) {
		return fmt.Errorf("%s has no controller for %s", parent.Path, controller)
	}
	return parent.Write("cgroup.subtree_control", "+"+controller)
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
