package testkit

import (
	"fmt"
	"testing"
)

// recorder is a testing.TB that records how it was ended.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper()               {}
func (r *recorder) Skip(...any)           { r.note("skipped") }
func (r *recorder) Skipf(string, ...any)  { r.note("skipped") }
func (r *recorder) Fatalf(string, ...any) { r.note("failed") }

// note records the first end: a real test does not go on after it.
func (r *recorder) note(end string) {
	if r.end == "" {
		r.end = end
	}
}

// TestRequire: a missing feature skips a test, or fails it if it is required.
func TestRequire(t *testing.T) {
	for _, tt := range []struct {
		required string
		test     func(testing.TB)
		want     string
	}{
		{"", func(t testing.TB) { Lacks(t, Seccomp, "refused") }, "skipped"},
		{"landlock, userns", func(t testing.TB) { Lacks(t, Seccomp, "refused") }, "skipped"},
		{"landlock,seccomp", func(t testing.TB) { Lacks(t, Seccomp, "refused") }, "failed"},
		{"", func(t testing.TB) { NeedLandlock(t, 0, 1, "switched off") }, "skipped"},
		{"landlock", func(t testing.TB) { NeedLandlock(t, 0, 1, "switched off") }, "failed"},
		{"landlock", func(t testing.TB) { NeedLandlock(t, 5, 6, "") }, "failed"},
		{"landlock", func(t testing.TB) { NeedLandlock(t, 6, 7, "") }, "skipped"},
		{"landlock", func(t testing.TB) { NeedLandlock(t, 7, 7, "") }, ""},
	} {
		t.Setenv("ZSBX_TEST_REQUIRE", tt.required)
		r := &recorder{TB: t}
		tt.test(r)
		if r.end != tt.want {
			t.Errorf("ZSBX_TEST_REQUIRE=%q: %q, want %q", tt.required, r.end, tt.want)
		}
	}
	t.Setenv("ZSBX_TEST_REQUIRE", "cgroup")
	for _, tt := range []struct {
		f       Feature
		has, ok bool
	}{{Cgroup, true, true}, {Cgroup, false, false}, {UserNS, false, true}} {
		if got, err := Condition(tt.f, tt.has); got != tt.has || (err == nil) != tt.ok {
			t.Errorf("Condition(%s, %v): %v, %v", tt.f, tt.has, got, err)
		}
	}
	t.Setenv("ZSBX_TEST_REQUIRE", "landlok")
	defer func() {
		if fmt.Sprint(recover()) == "<nil>" {
			t.Error("a word that names nothing is taken")
		}
	}()
	required(Landlock)
}
