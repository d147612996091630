package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// Kill sends SIGKILL to all members: by cgroup.kill (Linux 5.14), or else one
// by one while the group is frozen, so that none can fork meanwhile.
func (g *Group) Kill() error {
	err := g.Write("cgroup.kill", "1")
	if !errors.Is(err, fs.ErrNotExist) {
		return unlessRemoved(err)
	}
	_ = g.Write("cgroup.freeze", "1") // only speeds it up: what forks meanwhile is met in the next round
	g.killEach()
	return unlessRemoved(g.Write("cgroup.freeze", "0"))
}

// unlessRemoved leaves out an error that says that the group is gone, as systemd
// removes a scope that nothing lives in: only an empty group can be.
func unlessRemoved(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// killEach signals each member through a descriptor, so that a number that is
// reused between listing and killing is not hit: the member is looked up again
// after its descriptor was opened.
func (g *Group) killEach() {
	var handles []*proc.Handle
	for _, pid := range g.Pids() {
		id, _ := proc.Identify(pid)
		if h, err := proc.Open(id); err == nil {
			defer h.Close()
			handles = append(handles, h)
		}
	}
	still := g.Pids()
	for _, h := range handles {
		if slices.Contains(still, h.Pid) {
			_ = h.Signal(unix.SIGKILL)
		}
	}
}

// KillAll kills until nothing lives in the group, or ctx is done.
func (g *Group) KillAll(ctx context.Context) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if err := g.Kill(); err != nil {
			return fmt.Errorf("killing control group %s: %w", g.Path, err)
		}
		b, err := os.ReadFile(filepath.Join(g.Path, "cgroup.events"))
		if err != nil {
			return unlessRemoved(err)
		}
		if left, err := number(string(b), "populated"); err != nil || left == 0 {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(wait)
	}
}
