package cgroup

import (
	"os"
	"testing"
)

// TestKillRemoved: a group that systemd removes during Kill has no members left.
func TestKillRemoved(t *testing.T) {
	dir := t.TempDir() + "/group"
	g := &Group{Path: dir}
	if left, err := g.Kill(); left || err != nil {
		t.Error(left, err)
	}
}

// TestKillPopulated: a group counts as empty only if the kernel says so.
func TestKillPopulated(t *testing.T) {
	g := &Group{Path: t.TempDir()}
	for text, want := range map[string]bool{
		"populated 1\nfrozen 0\n": true, "frozen 1\npopulated 0\n": false,
		"frozen 0\n": true, "": true, "populated\n": true, "populated x\n": true,
	} {
		for file, text := range map[string]string{"cgroup.kill": "", "cgroup.events": text} {
			if err := os.WriteFile(g.Path+"/"+file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := g.Kill(); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}
