package cmd

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

// TestQuestion: what each sequence of answers does with what a command wrote. If nobody answers,
// all of it is kept.
func TestQuestion(t *testing.T) {
	for _, tt := range []struct{ answers, want string }{
		{"a", "apply all"},
		{"k", "keep"},
		{"t", "discard"},
		{"", "keep"},
		{"x y", "keep"},
		{"d a", "show all, apply all"},
		{"d d t", "show all, show all, discard"},
		{"c a l a", "apply [1 4]"},
		{"c a a a", "apply [1 2 3 4]"},
		{"c l l l k", "keep"},
		{"c d a l l", "show [1], apply [1]"},
		{"c l d b a", "show [2 3], apply all"},
		{"c a a b t", "discard"},
		{"c a", "keep"},
		{"c ? a l l", "apply [1]"},
	} {
		answers := strings.Fields(tt.answers)
		var did []string
		all := func(changes []int) string {
			if changes == nil {
				return "all"
			}
			return fmt.Sprint(changes)
		}
		q := &dialogue{
			ask: func(string) (string, error) {
				if len(answers) == 0 {
					return "", io.EOF
				}
				answer := answers[0]
				answers = answers[1:]
				return answer, nil
			},
			show:  func(changes []int) error { did = append(did, "show "+all(changes)); return nil },
			parts: []part{{"x", []int{1}}, {"y/", []int{2, 3}}, {"z", []int{4}}},
		}
		answer, changes, err := q.decide()
		if err != nil && (err != io.EOF || answer != keepAnswer) {
			t.Fatal(answer, err)
		}
		switch answer {
		case applyAnswer:
			did = append(did, "apply "+all(changes))
		case keepAnswer:
			did = append(did, "keep")
		case discardAnswer:
			did = append(did, "discard")
		}
		if got := strings.Join(did, ", "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.answers, got, tt.want)
		}
	}
}

// TestQuestionFails: an error while something is shown ends the question, and decides nothing.
func TestQuestionFails(t *testing.T) {
	broken := errors.New("broken")
	for _, answers := range [][]string{{"d"}, {"c", "d"}} {
		q := &dialogue{
			ask: func(string) (string, error) {
				answer := answers[0]
				answers = answers[1:]
				return answer, nil
			},
			show:  func([]int) error { return broken },
			parts: []part{{"x", []int{1}}},
		}
		if answer, changes, err := q.decide(); answer != keepAnswer || changes != nil || err != broken {
			t.Errorf("%s, %v, %v", answer, changes, err)
		}
	}
}

// TestProgress: what an apply has done is shown after a second, not too often, and wiped.
func TestProgress(t *testing.T) {
	var b strings.Builder
	p := &progress{a: &app{stderr: &b}, began: time.Now()}
	p.step(1, 8)
	p.end()
	if b.String() != "" {
		t.Errorf("at once: %q", b.String())
	}
	p.began = time.Now().Add(-time.Minute)
	p.step(2, 8)
	p.step(3, 8)
	p.end()
	if want := "\rzsbx: applying 8 changes: 25%\r\x1b[K"; b.String() != want {
		t.Errorf("%q, not %q", b.String(), want)
	}
}
