package fork

import (
	"encoding/json"
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
