package cgroup

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKillRemoved: a group that systemd removes while it is killed has nothing left.
func TestKillRemoved(t *testing.T) {
	dir := t.TempDir() + "/group"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	g := &Group{Ref: Ref{Path: dir}, fd: fd}
	if err := g.KillAll(t.Context()); err != nil {
		t.Error(err)
	}
}
