package cmd

import (
	"strings"
	"testing"
	"time"
)

// TestTempParents: short names, and on a Mac the user's own directory.
func TestTempParents(t *testing.T) {
	long := "/" + strings.Repeat("x", 53)
	const own = "/var/folders/ab/cd/T/"
	for _, c := range []struct {
		goos, tmpdir, own string
		want              [2]string
	}{
		{"linux", "", "", [2]string{"/tmp", "/tmp"}}, {"linux", "rel", "", [2]string{"/tmp", "/tmp"}},
		{"linux", "/short", "", [2]string{"/short", "/tmp"}}, {"linux", long, "", [2]string{long, "/tmp"}},
		{"linux", long + "x", "", [2]string{"/tmp", long + "x"}},
		{"darwin", long, "", [2]string{"/tmp", long}}, {"darwin", long[:52], "", [2]string{long[:52], "/tmp"}},
		{"darwin", "/short", own, [2]string{own, "/tmp"}}, {"darwin", "", own, [2]string{own, "/tmp"}},
	} {
		if got := tempParents(c.goos, c.tmpdir, c.own); got != c.want {
			t.Errorf("%s, %q, %q: %q, want %q", c.goos, c.tmpdir, c.own, got, c.want)
		}
	}
}

// TestStaysStopped: a process that reap stops before it kills it is not one that
// the user has stopped.
func TestStaysStopped(t *testing.T) {
	for until, want := range map[time.Duration]bool{0: false, time.Microsecond: false, 20 * time.Millisecond: false, time.Hour: true} {
		var now time.Duration
		got := staysStopped(func() bool { return now < until }, func(d time.Duration) { now += d })
		if got != want || now > 100*time.Millisecond {
			t.Errorf("stopped for %v: %v after %v", until, got, now)
		}
	}
}
