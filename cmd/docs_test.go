package cmd

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocLinks: links between the documents lead to a file that exists, and to a heading in it
// if they name one.
func TestDocLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)]*))?\)`)
	recipes, err := filepath.Glob(filepath.Join(recipePages, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := append(docPages(t), "../README.md", "../CHANGELOG.md", "../CONTRIBUTING.md", "../SECURITY.md")
	for _, f := range append(pages, recipes...) {
		for _, m := range link.FindAllStringSubmatch(readPage(t, f), -1) {
			to := f
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(f), m[1])
			}
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s: %v", f, m[1], err)
			} else if m[2] != "" && !headings(readPage(t, to))[m[2]] {
				t.Errorf("%s links to %s#%s, which has no such heading", f, to, m[2])
			}
		}
	}
}

// TestDocNames: pages that comments, messages and scripts name exist.
func TestDocNames(t *testing.T) {
	name := regexp.MustCompile(`docs/[a-z-]+\.md`)
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case !slices.Contains([]string{".go", ".txtar", ".sh", ".yml"}, filepath.Ext(p)):
			return nil
		}
		for _, n := range name.FindAllString(readPage(t, p), -1) {
			if _, err := os.Stat(filepath.Join("..", n)); err != nil {
				t.Errorf("%s names %s: %v", p, n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPromiseTests: the tests that docs/security.md names for its promises exist. A name without its
// directory stands for one in any.
func TestPromiseTests(t *testing.T) {
	var files []string
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, filepath.Base(p))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	_, promises, _ := strings.Cut(readPage(t, "../docs/security.md"), "## Promises\n")
	promises, _, _ = strings.Cut(promises, "\n## ")
	names := regexp.MustCompile("`([^` ]+(_test\\.go|\\.txtar))`").FindAllStringSubmatch(promises, -1)
	if len(names) == 0 {
		t.Error("docs/security.md names no tests")
	}
	for _, n := range names {
		if !slices.ContainsFunc(files, func(f string) bool {
			ok, err := filepath.Match(filepath.Base(n[1]), f)
			return ok && err == nil
		}) {
			t.Errorf("docs/security.md names %s, which does not exist", n[1])
		}
	}
}

// TestDocWords bounds the documents: whoever adds to them has to cut elsewhere. Words are
// counted as by wc -w.
func TestDocWords(t *testing.T) {
	const most, mostREADME = 18710, 900
	all := 0
	for _, f := range docPages(t) {
		all += len(strings.Fields(readPage(t, f)))
	}
	if all > most {
		t.Errorf("docs has %d words, the bound is %d", all, most)
	}
	if n := len(strings.Fields(readPage(t, "../README.md"))); n > mostREADME {
		t.Errorf("the README has %d words, the bound is %d", n, mostREADME)
	}
}

// docPages lists the documents.
func docPages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// headings returns the headings of a page as links name them.
func headings(page string) map[string]bool {
	set := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		h := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(m[1]), "")
		set[strings.ReplaceAll(h, " ", "-")] = true
	}
	return set
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
