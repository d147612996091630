package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestWithoutValues(t *testing.T) {
	got := withoutValues([]string{"--rw", ".", "--env", "A=secret", "--env=B=secret", "--env", "C", "--"})
	if want := []string{"--rw", ".", "--env", "A", "--env=B", "--env", "C", "--"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLastRunsAreBounded: however many directories a run fails in.
func TestLastRunsAreBounded(t *testing.T) {
	h := t.TempDir()
	t.Setenv("HOME", h)
	t.Setenv("XDG_STATE_HOME", h+"/state")
	files := map[string]int{}
	for i := range 1000 {
		dir := filepath.Join(h, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		file, at, err := lastRunFile()
		if err != nil || at != dir {
			t.Fatalf("%s: %v", at, err)
		}
		files[file]++
	}
	if len(files) < 200 || len(files) > 256 {
		t.Errorf("%d files", len(files))
	}
}
