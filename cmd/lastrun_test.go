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

func TestLastRunsAreForgotten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "last")
	for i := range maxLastRuns + 5 {
		if err := writeLastRun(filepath.Join(dir, fmt.Sprint(i)), &lastRun{Dir: "/x", Args: []string{"true"}}); err != nil {
			t.Fatal(err)
		}
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != maxLastRuns {
		t.Errorf("%d are kept, want %d", len(entries), maxLastRuns)
	}
	if info, err := os.Stat(filepath.Join(dir, fmt.Sprint(maxLastRuns+4))); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the newest: %v, %v", info, err)
	}
}
