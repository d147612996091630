package testkit

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what has to happen. It is far more than
// anything takes on a busy machine: only a test that fails waits as long.
const Patience = 2 * time.Minute

// pause is the time between two looks.
const pause = 2 * time.Millisecond

// Eventually waits until happened reports true. After Patience the test fails:
// what says what did not happen.
func Eventually(t testing.TB, what string, happened func() bool) {
	t.Helper()
	if !Within(Patience, happened) {
		t.Fatalf("after %v still not so: %s", Patience, what)
	}
}

// Within waits until happened reports true, for d at most, and reports whether
// it did.
func Within(d time.Duration, happened func() bool) bool {
	for end := time.Now().Add(d); ; time.Sleep(pause) {
		if happened() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Stays watches for a moment that holds reports true, and fails the test when it
// does not. What must not happen can't be awaited: a busy machine makes such a
// test miss something, but never fail without cause.
func Stays(t testing.TB, what string, holds func() bool) {
	t.Helper()
	const moment = 50 * time.Millisecond
	if Within(moment, func() bool { return !holds() }) {
		t.Fatalf("no longer so: %s", what)
	}
}
