package testkit

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Feature is something that a machine may lack, as ZSBX_TEST_REQUIRE names it.
type Feature string

// The features. The variable has their names, separated by spaces or commas.
const (
	Landlock   Feature = "landlock"   // version 6, which is Linux 6.12, or a later one
	Seccomp    Feature = "seccomp"    // filters, and a supervisor that answers for them
	UserNS     Feature = "userns"     // user, mount and PID namespaces; root makes the last two without the first
	Cgroup     Feature = "cgroup"     // a control group, version 2, below which groups can be made
	TinyScheme Feature = "tinyscheme" // a program of that name
	Seatbelt   Feature = "seatbelt"   // macOS, outside any sandbox
)

// LandlockABI is the version that the feature Landlock means: the first one that keeps
// signals inside. A test that needs a later version is skipped on an older kernel.
const LandlockABI = 6

// Lacks ends a test that can't run because a feature is missing. The test is skipped, or
// fails if the feature is required.
func Lacks(t testing.TB, f Feature, why ...any) {
	t.Helper()
	if required(f) {
		t.Fatalf("%s is required here: %s", f, fmt.Sprint(why...))
	}
	t.Skip(fmt.Sprintf("%s: ", f), fmt.Sprint(why...))
}

// NeedProgram skips a test if a program that it starts is missing, and returns its path.
func NeedProgram(t testing.TB, name string) string {
	t.Helper()
	file, err := exec.LookPath(name)
	if err != nil {
		t.Skip(name + " is not installed")
	}
	return file
}

// SystemPath returns PATH without the directories below the home directory of whoever runs the
// tests, and below others. They are closed to commands that have another home directory, which zsbx
// would say each time.
func SystemPath(list string, others ...string) string {
	tops := slices.Clone(others)
	home, err := os.UserHomeDir()
	if err == nil {
		tops = append(tops, home)
	}
	dirs := slices.DeleteFunc(filepath.SplitList(list), func(dir string) bool {
		return slices.ContainsFunc(tops, func(top string) bool {
			return strings.HasPrefix(filepath.Clean(dir)+"/", filepath.Clean(top)+"/")
		})
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

var notFound = regexp.MustCompile(`(?m)^\S*sh: (?:\d+: |line \d+: )?(\S+): (?:command )?not found$`)

// NeedShell skips a test if a shell's exit status and its output say that a program is missing.
func NeedShell(t testing.TB, status int, out string) {
	t.Helper()
	if status != 127 {
		return
	}
	if m := notFound.FindStringSubmatch(out); m != nil {
		t.Skip(m[1] + " is not installed")
	}
}

// NeedLandlock ends a test unless have, the kernel's version of Landlock, is at least want.
// why says why the kernel has none.
func NeedLandlock(t testing.TB, have, want int, why string) {
	t.Helper()
	switch {
	case have >= want:
	case want <= LandlockABI:
		Lacks(t, Landlock, fmt.Sprintf("version %d is needed, this kernel has %d ", want, have), why)
	default:
		t.Skipf("the kernel is too old: version %d of Landlock is needed, it has %d", want, have)
	}
}

// Condition answers a script that asks for a feature. It returns has, or an error if the
// feature is missing and required.
func Condition(f Feature, has bool) (bool, error) {
	if !has && required(f) {
		return false, fmt.Errorf("%s is required here, and missing", f)
	}
	return has, nil
}

// required reports whether ZSBX_TEST_REQUIRE names a feature. It panics at a word that
// is not a feature, which would require nothing.
func required(f Feature) bool {
	words := strings.FieldsFunc(os.Getenv("ZSBX_TEST_REQUIRE"), func(r rune) bool { return r == ' ' || r == ',' })
	for _, w := range words {
		if !slices.Contains([]Feature{Landlock, Seccomp, UserNS, Cgroup, TinyScheme, Seatbelt}, Feature(w)) {
			panic(fmt.Sprintf("ZSBX_TEST_REQUIRE: there is no feature %q", w))
		}
	}
	return slices.Contains(words, string(f))
}

// Patience is how long a test waits for what has to happen. It is far more than
// anything takes on a busy machine: only a test that fails waits as long.
const Patience = 2 * time.Minute

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

// Stays watches for a moment that holds returns true, and fails the test if it does not.
// One can't wait for what must not happen: on a busy machine such a test may miss
// something, but never fails without cause.
func Stays(t testing.TB, what string, holds func() bool) {
	t.Helper()
	const moment = 50 * time.Millisecond
	if Within(moment, func() bool { return !holds() }) {
		t.Fatalf("no longer so: %s", what)
	}
}

// Update is the flag -update, which rewrites a package's golden files.
var Update = flag.Bool("update", false, "rewrite the golden files of this package")

// Golden compares text with a file of the package's testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *Update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has changed; go test -update rewrites it\ngot:\n%s", file, got)
	}
}
