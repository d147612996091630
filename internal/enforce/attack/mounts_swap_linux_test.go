package attack_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/enforce/mounts"
	"github.com/zsbx/zsbx/internal/fork"
)

// TestMaskSwap exchanges two directories as fast as it can while commands start. Each has a
// file with the denied name. The file that has this name when a plan is made must not be read
// by its command, under any name. A start may also fail.
func TestMaskSwap(t *testing.T) {
	needMounts(t)
	p := newPlace(t)
	write(t, p.in+"/a/denied", "one")
	write(t, p.in+"/b/denied", "two")
	const names = "cat a/denied b/denied 2>/dev/null; true"
	if _, out := p.sh(t, nil, names); out != "onetwo" {
		t.Fatalf("control: %q", out)
	}
	p.deny(p.in + "/a/denied")
	texts := map[uint64]string{}
	for _, f := range []string{"a", "b"} {
		var st unix.Stat_t
		if err := unix.Stat(p.in+"/"+f+"/denied", &st); err != nil {
			t.Fatal(err)
		}
		texts[st.Ino] = map[string]string{"a": "one", "b": "two"}[f]
	}
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !over.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, p.in+"/a", unix.AT_FDCWD, p.in+"/b", unix.RENAME_EXCHANGE)
		}
	}()
	defer func() { over.Store(true); <-done }()
	ran, stopped := 0, 0
	for range 300 {
		plan := p.mountPlan()
		secret := ""
		for _, m := range plan.Mounts.Mounts {
			if m.Kind == mounts.Mask {
				secret = texts[m.ID.Ino]
			}
		}
		if secret == "" {
			t.Fatal("nothing is covered")
		}
		var se *fork.StepError
		_, out, err := started(t, plan, &fork.Command{
			Path: "/bin/sh", Args: []string{"sh", "-c", names}, Dir: p.in, Env: []string{"PATH=/usr/bin:/bin"},
		})
		switch {
		case errors.Is(err, landlock.ErrChanged), errors.As(err, &se) && se.Errno == unix.ENOENT:
			stopped++
		case err != nil:
			t.Fatal(err)
		case strings.Contains(out, secret):
			t.Fatalf("%q was read: %q, after %d starts", secret, out, ran)
		default:
			ran++
		}
	}
	t.Logf("%d ran, %d were stopped", ran, stopped)
}
