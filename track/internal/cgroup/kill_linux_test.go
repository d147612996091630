package cgroup

import (
	"testing"
)

// TestKillRemoved: a group that systemd removes while it is killed has nothing left.
func TestKillRemoved(t *testing.T) {
	dir := t.TempDir() + "/group"
	g := &Group{Path: dir}
	if left, err := g.Kill(); left || err != nil {
		t.Error(left, err)
	}
}
