package track

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// populated asks whether anything lives in the group or below it.
func (g *cgroup) populated() (bool, error) {
	b, err := g.read("cgroup.events")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return false, nil // removed: only an empty group can be
	}
	if err != nil {
		return false, err
	}
	p, _, err := parseEvents(b)
	return p, err
}

// kill sends SIGKILL to all members: by cgroup.kill (Linux 5.14), or else one
// by one while the group is frozen, so that none can fork meanwhile.
func (g *cgroup) kill() error {
	err := g.write("cgroup.kill", "1")
	if !errors.Is(err, fs.ErrNotExist) {
		if errors.Is(err, unix.ENODEV) {
			return nil
		}
		return err
	}
	_ = g.write("cgroup.freeze", "1") // only speeds it up: what forks meanwhile is met in the next round
	err = g.killEach()
	return errors.Join(err, g.write("cgroup.freeze", "0"))
}

// killEach signals each member through a descriptor, so that a number that is
// reused between listing and killing is not hit: the member is looked up again
// after its descriptor was opened.
func (g *cgroup) killEach() error {
	pids, err := g.pids()
	if err != nil {
		return err
	}
	hs := make(map[int]*handle, len(pids))
	for _, pid := range pids {
		if id, err := identify(pid); err == nil {
			if h, err := openProc(id); err == nil {
				hs[pid] = h
			}
		}
	}
	again, err := g.pids()
	for _, pid := range again {
		if h := hs[pid]; h != nil {
			_ = h.signal(unix.SIGKILL)
		}
	}
	for _, h := range hs {
		h.close()
	}
	return err
}

// killAll kills until nothing lives in the group, or ctx is done.
func (g *cgroup) killAll(ctx context.Context) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		if err := g.kill(); err != nil {
			return fmt.Errorf("killing control group %s: %w", g.ref.Path, err)
		}
		p, err := g.waitEmpty(ctx, wait)
		if err != nil || !p {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// waitEmpty waits until the group is empty, for d at most: a change of
// cgroup.events raises POLLPRI.
func (g *cgroup) waitEmpty(ctx context.Context, d time.Duration) (populated bool, err error) {
	f, err := g.open("cgroup.events", unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	defer f.Close()
	for end := time.Now().Add(d); ; {
		var b [256]byte
		n, err := f.ReadAt(b[:], 0)
		if errors.Is(err, unix.ENODEV) {
			return false, nil
		}
		if p, _, err := parseEvents(b[:max(n, 0)]); err != nil || !p {
			return false, err
		}
		left := time.Until(end)
		if left <= 0 || ctx.Err() != nil {
			return true, nil
		}
		fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLPRI}}
		_, _ = unix.Poll(fds, int(left.Milliseconds())+1)
	}
}
