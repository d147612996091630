package fork

import (
	"encoding/json"
	"errors"
	"slices"
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
			stage = string(se.Stage)
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
	if err := checkFingerprint(1, good); err != nil {
		t.Error(err)
	}
	for _, n := range []int{-1, 0, 2} {
		if checkFingerprint(n, good) == nil {
			t.Errorf("%d passes for a sandbox", n)
		}
	}
	for _, p := range [][2]int{{0, 0}, {1, 1}, {1, 0}, {-1, -1}, {0, -1}, {-1, 1}} {
		if checkFingerprint(1, p) == nil {
			t.Errorf("%v passes for the fingerprint", p)
		}
	}
}

// TestOrderKeepsBytes: arguments, names and values that are no UTF-8 reach the
// command as they are.
func TestOrderKeepsBytes(t *testing.T) {
	c := &Command{
		Path: "/bin/caf\xe9", Args: []string{"caf\xe9.txt", "", "a\nb", "\u2028", "\xff\xfe"}, Env: []string{"A=\x80", "B=ü", "C="},
		Sandbox: &Sandbox{Profile: "(version 1)", Session: "0f9a3c1e-5b7d-4e2a-9c11-223344556677"},
	}
	b, err := json.Marshal(newOrder(c))
	if err != nil {
		t.Fatal(err)
	}
	o, err := parseOrder(b)
	if err != nil {
		t.Fatal(err)
	}
	if string(o.Path) != c.Path || !slices.Equal(stringsOf(o.Args), c.Args) || !slices.Equal(stringsOf(o.Env), c.Env) {
		t.Errorf("%q %q %q", o.Path, o.Args, o.Env)
	}
	if o.Profile != c.Sandbox.Profile || o.Session != c.Sandbox.Session {
		t.Errorf("%+v", o)
	}
	for _, bad := range []string{"", "{", "{}", string(b[:len(b)/2]), `{"path":"L3g=","args":[]}`, `{"path":"L3g=","args":["eA=="],"session":"x"}`} {
		if _, err := parseOrder([]byte(bad)); err == nil {
			t.Errorf("%q passes for an order", bad)
		}
	}
}
