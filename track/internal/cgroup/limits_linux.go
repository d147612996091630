package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// errNoController says that a group lacks the files for a limit.
var errNoController = errors.New("has no controller")

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
	parent, err := Open(filepath.Dir(g.Path))
	if err != nil {
		return err
	}
	defer parent.Close()
	has, err := parent.read("cgroup.controllers")
	if err != nil {
		return err
	}
	if !slices.Contains(strings.Fields(string(has)), controller) {
		return fmt.Errorf("%s %w for %s", parent.Path, errNoController, controller)
	}
	return parent.Write("cgroup.subtree_control", "+"+controller)
}

// limited makes sure that somebody else has bounded the group.
func (g *Group) limited(l Limits) error {
	for _, s := range l.settings() {
		b, err := g.read(s.file)
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && strings.HasPrefix(string(b), "max") {
			err = errors.New("it is not set")
		}
		if err != nil {
			return fmt.Errorf("the user's service manager does not bound %s: %w", s.controller, err)
		}
	}
	return nil
}

// Reached reads how often the group ran into its limits. What can't be read is 0.
func (g *Group) Reached() (r Reached) {
	_, err := g.read("cgroup.events")
	r.Gone = err != nil
	b, _ := g.read("memory.events")
	r.OOMKills, _ = number(b, "oom_kill")
	b, _ = g.read("pids.events")
	r.Forks, _ = number(b, "max")
	return r
}
