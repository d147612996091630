package fork

import (
	"errors"
	"slices"
	"syscall"
	"testing"
)

func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		reports []report
		want    string // of the error; "" for none
		errno   error  // of the *StepError
	}{
		{[]report{{}}, "", nil},
		{nil, "preparing the sandbox: the helper ended without reporting", nil},
		{[]report{{Message: "macOS refused the profile: unbound variable"}}, "macOS refused the profile: unbound variable", nil},
		{[]report{{}, {Message: "no bytes"}}, "no bytes", nil},
		{[]report{{}, {Errno: syscall.ENOENT}}, "exec: /bin/x: no such file or directory", syscall.ENOENT},
		{[]report{{}, {Errno: syscall.EPERM}}, "exec: /bin/x: operation not permitted", syscall.EPERM},
	} {
		err := outcome("/bin/x", c.reports)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%+v: %v", c.reports, err)
		}
		var se *StepError
		if errors.As(err, &se) != (c.errno != nil) || c.errno != nil && (se.Stage != StageExec || se.Errno != c.errno) {
			t.Errorf("%+v: %v, want a step that failed by %v", c.reports, err, c.errno)
		}
	}
}

func TestCheckFingerprint(t *testing.T) {
	if err := checkFingerprint(1, 0, 1); err != nil {
		t.Error(err)
	}
	for _, n := range []int{-1, 0, 2} {
		if checkFingerprint(n, 0, 1) == nil {
			t.Errorf("%d passes for a sandbox", n)
		}
	}
	for _, p := range [][2]int{{0, 0}, {1, 1}, {1, 0}, {-1, -1}, {0, -1}, {-1, 1}} {
		if checkFingerprint(1, p[0], p[1]) == nil {
			t.Errorf("%v passes for the fingerprint", p)
		}
	}
}

// TestOrders: names and values that are not UTF-8 reach the command unchanged, and truncated
// orders are refused.
func TestOrders(t *testing.T) {
	c := &Command{
		Env:     []string{"A=\x80", "B=ü", "C=", "D=a\nb\u2028", ""},
		Sandbox: &Sandbox{Profile: "(version 1)", Session: "0f9a3c1e-5b7d-4e2a-9c11-223344556677"},
	}
	text, err := c.orders()
	if err != nil {
		t.Fatal(err)
	}
	b, env, err := parseOrders(text)
	if err != nil || b != *c.Sandbox || !slices.Equal(env, c.Env) {
		t.Errorf("%+v, %q, %v", b, env, err)
	}
	bad := []string{"(version 1)\x00x\x00" + ordersEnd}
	for n := range text {
		bad = append(bad, text[:n])
	}
	for _, bad := range bad {
		if _, _, err := parseOrders(bad); err == nil {
			t.Errorf("%q passes for orders", bad)
		}
	}
	c.Env[0] = "A=x\x00DYLD_INSERT_LIBRARIES=/tmp/x"
	if text, err := c.orders(); err == nil {
		t.Errorf("two variables in one: %q", text)
	}
}
