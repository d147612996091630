package fork

import (
	"errors"
	"syscall"
	"testing"
)

func TestOutcome(t *testing.T) {
	ready := report{}
	for _, c := range []struct {
		reports []report
		stage   string // of the *StepError or *SandboxError
		is      error
	}{
		{[]report{ready}, "", nil},
		{nil, helperSetup, nil},
		{[]report{{Stage: helperSandboxed}}, helperSandboxed, ErrSandboxed},
		{[]report{{Stage: helperProfile, Message: "unbound variable"}}, helperProfile, nil},
		{[]report{{Stage: helperCheck, Message: "-1"}}, helperCheck, nil},
		{[]report{ready, {Stage: helperExec, Errno: syscall.ENOENT}}, helperExec, syscall.ENOENT},
		{[]report{ready, {Stage: helperExec, Errno: syscall.EPERM}}, helperExec, syscall.EPERM},
	} {
		err := outcome("/bin/x", c.reports)
		stage := ""
		var se *StepError
		var be *SandboxError
		switch {
		case errors.As(err, &se):
			stage = se.Stage
		case errors.As(err, &be):
			stage = be.Stage
		}
		if stage != c.stage || c.is != nil && !errors.Is(err, c.is) || (err == nil) != (c.stage == "") {
			t.Errorf("%+v: %v", c.reports, err)
		}
		if c.is != ErrSandboxed && errors.Is(err, ErrSandboxed) {
			t.Errorf("%+v is taken for a nested sandbox", c.reports)
		}
	}
}

func TestCheckFingerprint(t *testing.T) {
	good := [2]int{0, 1}
	if err := checkFingerprint(1, map[string][2]int{"names": good, "paths": good}); err != nil {
		t.Error(err)
	}
	for _, n := range []int{-1, 0, 2} {
		if checkFingerprint(n, nil) == nil {
			t.Errorf("%d passes for a sandbox", n)
		}
	}
	for _, p := range [][2]int{{0, 0}, {1, 1}, {1, 0}, {-1, -1}, {0, -1}, {-1, 1}} {
		for _, name := range []string{"names", "paths"} {
			pairs := map[string][2]int{"names": good, "paths": good}
			pairs[name] = p
			if checkFingerprint(1, pairs) == nil {
				t.Errorf("%s %v passes for the fingerprint", name, p)
			}
		}
	}
}
