package main

import (
	"os"
	"strings"
	"testing"
)

// TestFresh fails when man/ or completions/ are not what the commands say.
func TestFresh(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if have, err := os.ReadFile("../../" + name); err != nil || string(have) != string(text) {
			t.Errorf("%s is out of date: make docs (%v)", name, err)
		}
	}
}

func TestRoff(t *testing.T) {
	for in, want := range map[string]string{
		"--rw .":       `\-\-rw .`,
		".zsbx.toml":   `\&.zsbx.toml`,
		"a\n'quoted'":  "a\n\\&'quoted'",
		`back\slash`:   `back\eslash`,
		"plain\ntext.": "plain\ntext.",
	} {
		if got := roff(in); got != want {
			t.Errorf("roff(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestPages looks at what every page has to have.
func TestPages(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if !strings.HasPrefix(name, "man/") {
			continue
		}
		for _, want := range []string{".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH EXIT STATUS", ".SH EXAMPLES"} {
			if !strings.Contains(string(text), want+"\n") {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
}
