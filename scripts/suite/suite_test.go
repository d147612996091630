package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const packages = `# Comment
btrfs-progs	mkfs.btrfs
bash-completion	/usr/share/bash-completion/bash_completion
build-essential	cc gcc
python3-venv
zsh	zsh
`

// script is what testscript writes for a script, up to the line that ended it.
func script(last string) string {
	return "=== RUN   X\n    testscript.go:609: WORK=$WORK\n        PATH=/usr/bin\n        \n        # What it is for. (0.001s)\n        > [!linux] skip\n        > " + last + "\n        \n"
}

// TestSummary: what is shown of a run is what go test shows, and the last line counts.
func TestSummary(t *testing.T) {
	events := []event{
		{Action: "start", Package: "p"},
		{Action: "output", Package: "p", Test: "TestA", Output: "=== RUN   TestA\n"},
		{Action: "output", Package: "p", Test: "TestA/x", Output: "noise of what passes\n"},
		{Action: "pass", Package: "p", Test: "TestA/x"},
		{Action: "pass", Package: "p", Test: "TestA"},
		{Action: "output", Package: "p", Test: "TestB", Output: "    b_test.go:7: mkfs.btrfs is not installed\n"},
		{Action: "output", Package: "p", Test: "TestB", Output: "--- SKIP: TestB (0.00s)\n"},
		{Action: "skip", Package: "p", Test: "TestB"},
		{Action: "output", Package: "p", Test: "TestC", Output: "    c_test.go:7: root may\n"},
		{Action: "skip", Package: "p", Test: "TestC"},
		{Action: "output", Package: "p", Test: "TestS/a", Output: script("[!exec:/usr/bin/zsh] skip") + "--- SKIP: TestS/a (0.00s)\n"},
		{Action: "skip", Package: "p", Test: "TestS/a"},
		{Action: "output", Package: "p", Test: "TestS/b", Output: script("[!exec:gcc] skip 'no compiler'")},
		{Action: "skip", Package: "p", Test: "TestS/b"},
		{Action: "output", Package: "p", Test: "TestS/c", Output: script("[root] skip 'root needs none'")},
		{Action: "skip", Package: "p", Test: "TestS/c"},
		{Action: "output", Package: "p", Test: "TestS/d", Output: script("[exec:zsh] exec zsh\n        > [exec:rare] exec rare\n        > [exists:/usr/share/bash-completion/bash_completion] exec bash")},
		{Action: "pass", Package: "p", Test: "TestS/d"},
		{Action: "output", Package: "p", Test: "TestS/e", Output: script("[!exec:hg] skip")},
		{Action: "skip", Package: "p", Test: "TestS/e"},
		{Action: "pass", Package: "p", Test: "TestS"},
		{Action: "output", Package: "p", Output: "PASS\n"},
		{Action: "output", Package: "p", Output: "ok  \tp\t0.1s\n"},
		{Action: "pass", Package: "p"},
	}
	s, shown := run(t, events)
	if shown != "ok  \tp\t0.1s\n" {
		t.Errorf("shown:\n%s", shown)
	}
	const want = "ok: 2 tests, 6 skipped: 1 need btrfs-progs, 1 need build-essential, 1 need hg, 1 need zsh, 2 for other reasons; parts of scripts: 1 need bash-completion, 1 need zsh"
	if got := s.summary(true); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var list strings.Builder
	s.list(&list)
	if !strings.Contains(list.String(), "skipped: p TestC: root may\n") || strings.Count(list.String(), "\n") != 6 {
		t.Errorf("listed:\n%s", list.String())
	}
}

// TestFailures are shown, and so is what does not compile.
func TestFailures(t *testing.T) {
	s, shown := run(t, []event{
		{Action: "build-output", Output: "x.go:1: no\n"},
		{Action: "output", Package: "p", Test: "TestA", Output: "=== RUN   TestA\n"},
		{Action: "output", Package: "p", Test: "TestA", Output: "    a_test.go:7: wrong\n"},
		{Action: "output", Package: "p", Test: "TestA", Output: "--- FAIL: TestA (0.00s)\n"},
		{Action: "fail", Package: "p", Test: "TestA"},
		{Action: "output", Package: "p", Output: "FAIL\tp\t0.1s\n"},
		{Action: "fail", Package: "p"},
		{Action: "output", Package: "q", Test: "TestDies", Output: "panic: here\n"},
		{Action: "output", Package: "q", Output: "FAIL\tq\t0.1s\n"},
		{Action: "fail", Package: "q"},
	})
	if want := "x.go:1: no\n    a_test.go:7: wrong\n--- FAIL: TestA (0.00s)\npanic: here\nFAIL\tp\t0.1s\nFAIL\tq\t0.1s\n"; sorted(shown) != sorted(want) {
		t.Errorf("shown:\n%s", shown)
	}
	if got, want := s.summary(false), "FAILED: 0 tests passed, 1 failed, 0 skipped"; got != want {
		t.Errorf("got %s", got)
	}
}

func run(t *testing.T, events []event) (*suite, string) {
	t.Helper()
	var text, shown strings.Builder
	for _, e := range events {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	s := newSuite(packages, func(string) bool { return false })
	s.read(strings.NewReader(text.String()), &shown)
	return s, shown.String()
}

// sorted returns the lines of a text in an order that does not depend on theirs.
func sorted(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestLongestFirst: the packages that take longest exist, and are named before all the others.
func TestLongestFirst(t *testing.T) {
	got := strings.Join(longestFirst([]string{"-timeout", "30m", "./..."}, 2), " ")
	if want := "-p 3 -timeout 30m " + strings.Join(longest, " ") + " ./..."; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	few := []string{"-run", "TestX", "./policy/..."}
	if got := longestFirst(few, 2); !slices.Equal(got, few) {
		t.Errorf("got %q", got)
	}
	for _, dir := range longest {
		if tests, _ := filepath.Glob("../../" + dir + "/*_test.go"); len(tests) == 0 {
			t.Errorf("%s has no tests", dir)
		}
	}
}
