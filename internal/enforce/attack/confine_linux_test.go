package attack_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/internal/enforce"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/policy"
)

func TestStartConfined(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	plan := p.plan()
	if err := plan.Err(nil, false); err != nil {
		t.Fatal(err)
	}
	if status, out := p.sh(t, nil, `cat "$OUT/file"`); status != 0 {
		t.Fatalf("control: exit status %d: %s", status, out)
	}
	if status, out := p.sh(t, plan, `cat "$OUT/file"`); status == 0 {
		t.Errorf("reading outside worked: %s", out)
	}
	if status, out := p.sh(t, plan, `cat file && echo more >>file && mv file sub/ && rm sub/file && mkdir d && rmdir d`); status != 0 {
		t.Errorf("inside: exit status %d: %s", status, out)
	}
	if status, out := p.sh(t, plan, `touch "$OUT/new"`); status == 0 {
		t.Errorf("writing outside worked: %s", out)
	}
}

func TestPathChanged(t *testing.T) {
	needLandlock(t, 1)
	for name, change := range map[string]func(p *place) error{
		"another directory": func(p *place) error {
			return errors.Join(os.Rename(p.in, p.in+".old"), os.Mkdir(p.in, 0o755))
		},
		"a link": func(p *place) error {
			return errors.Join(os.Rename(p.in, p.in+".old"), os.Symlink(p.out, p.in))
		},
		"gone": func(p *place) error { return os.Rename(p.in, p.in+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			plan := p.plan()
			if err := change(p); err != nil {
				t.Fatal(err)
			}
			marker := filepath.Join(t.TempDir(), "ran")
			_, err := startUnder(plan, &fork.Command{Path: "/bin/touch", Args: []string{"touch", marker}})
			if !errors.Is(err, landlock.ErrChanged) || !strings.HasPrefix(err.Error(), p.in+" ") {
				t.Errorf("got %v, want a change of %s", err, p.in)
			}
			if _, several := err.(interface{ Unwrap() []error }); several {
				t.Error("it is reported as several mistakes")
			}
			if _, err := os.Stat(marker); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// TestEntryGone: entries beside a denied file may be removed during the start, as happens in
// /proc all the time.
func TestEntryGone(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	for _, name := range []string{"denied", "kept", "gone"} {
		write(t, p.in+"/"+name, name+"\n")
	}
	p.policy.Paths = p.policy.Paths[:len(p.policy.Paths)-1] // in
	p.allow(t, policy.Read, p.in)
	p.deny(p.in + "/denied")
	plan := p.plan()
	if err := os.Remove(p.in + "/gone"); err != nil {
		t.Fatal(err)
	}
	if status, out := p.sh(t, plan, `cat kept`); status != 0 || out != "kept" {
		t.Errorf("exit status %d: %s", status, out)
	}
	if status, out := p.sh(t, plan, `cat denied`); status == 0 {
		t.Errorf("what is denied was read: %s", out)
	}
}

// TestNestedTooDeep: the kernel refuses a 17th domain, and the command is not started.
func TestNestedTooDeep(t *testing.T) {
	needLandlock(t, 1)
	p := newPlace(t)
	plan := p.plan()
	c := &fork.Command{Path: "/bin/true", Args: []string{"true"}}
	var steps []fork.Step
	for range 17 {
		inner := &fork.Command{}
		if _, err := plan.Confine(inner); err != nil {
			t.Fatal(err)
		}
		for _, s := range inner.Steps {
			if s.Nr == unix.SYS_LANDLOCK_RESTRICT_SELF || strings.Contains(s.Name, "NO_NEW_PRIVS") {
				steps = append(steps, s)
			}
		}
		c.Cleanup = append(c.Cleanup, inner.Cleanup...)
	}
	c.Steps = steps
	_, err := fork.Start(c)
	if !errors.Is(err, unix.E2BIG) {
		t.Fatalf("got %v, want %v", err, unix.E2BIG)
	}
	if s := enforce.ExplainStart(err).Error(); !strings.Contains(s, "16 Landlock domains") {
		t.Errorf("got %q", s)
	}
}

// TestNested: a confined process can confine another one more, but not less. The outer plan,
// for an old kernel, refuses openat2(2), as old containers do, so that the inner one has to
// open its paths without it.
func TestNested(t *testing.T) {
	needLandlock(t, 1)
	needSeccomp(t)
	for _, abi := range []int{2, enforce.Probe().Landlock} {
		p := newPlace(t)
		caps := enforce.Probe()
		caps.Landlock = min(abi, caps.Landlock)
		plan := enforce.NewPlan(p.policy, caps, nil, enforce.Options{})
		for _, tt := range []struct {
			allow, read string
			want        syscall.Errno
		}{
			{p.in, p.in + "/file", 0},
			{p.in + "/sub", p.in + "/file", unix.EACCES},
			{p.out, p.out + "/file", unix.EACCES},
		} {
			if got := p.try(t, plan, "nested", tt.allow, tt.read); got != tt.want {
				t.Errorf("ABI %d: %s with %s allowed: got %v, want %v", abi, tt.read, tt.allow, got, tt.want)
			}
		}
	}
}
