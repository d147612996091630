package cmd

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocLinks: links between the documents lead somewhere.
func TestDocLinks(t *testing.T) {
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	for _, f := range append(files, "../README.md", "../CHANGELOG.md") {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(b), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(f), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", f, m[1], err)
			}
		}
	}
}

// TestREADMECommands: the flags and targets that the README names exist.
func TestREADMECommands(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	mk, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	root := Root()
	flags := map[string]bool{"--help": true}
	for _, c := range root.Commands() {
		for _, w := range strings.Fields(c.Flags().FlagUsages()) {
			flags[strings.TrimRight(w, ",")] = true
		}
	}
	for _, m := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(string(b), -1) {
		if !flags[m] {
			t.Errorf("the README names %s, which no command has", m)
		}
	}
	for _, m := range regexp.MustCompile("(?m)(?:^    |&& |`)make ([a-z]+)").FindAllStringSubmatch(string(b), -1) {
		if !strings.Contains(string(mk), "\n"+m[1]+":") {
			t.Errorf("the README names make %s, which there is not", m[1])
		}
	}
}
