package cgroup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/track/internal/proc"
)

// Kill sends SIGKILL to all members: by cgroup.kill (Linux 5.14), or else one
// by one while the group is frozen, so that none can fork meanwhile.
func (g *Group) Kill() error {
	err := g.Write("cgroup.kill", "1")
	switch {
	case errors.Is(err, unix.ENODEV):
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	_ = g.Write("cgroup.freeze", "1") // only speeds it up: what forks meanwhile is met in the next round
	err = g.killEach()
	if thawed := g.Write("cgroup.freeze", "0"); !removed(thawed) {
		err = errors.Join(err, thawed)
	}
	return err
}

// removed reports whether an error says that the group is gone, as systemd removes a
// scope that nothing lives in: only an empty group can be.
func removed(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }

// killEach signals each member through a descriptor, so that a number that is
// reused between listing and killing is not hit: the member is looked up again
// after its descriptor was opened.
func (g *Group) killEach() error {
	pids, err := g.Pids()
	if err != nil {
		return err
	}
	handles := make(map[int]*proc.Handle, len(pids))
	for _, pid := range pids {
		if id, err := proc.Identify(pid); err == nil {
			if h, err := proc.Open(id); err == nil {
				defer h.Close()
				handles[pid] = h
			}
		}
	}
	again, err := g.Pids()
	for _, pid := range again {
		if h := handles[pid]; h != nil {
			_ = h.Signal(unix.SIGKILL)
		}
	}
	return err
}

// KillAll kills until nothing lives in the group, or ctx is done.
func (g *Group) KillAll(ctx context.Context) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 20*time.Millisecond) {
		if err := g.Kill(); err != nil {
			return fmt.Errorf("killing control group %s: %w", g.Path, err)
		}
		if p, err := g.populated(); err != nil || !p {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(wait)
	}
}

// populated reports whether anything lives in the group or below it.
func (g *Group) populated() (bool, error) {
	b, err := g.read("cgroup.events")
	if removed(err) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	n, err := number(b, "populated")
	return n != 0, err
}
