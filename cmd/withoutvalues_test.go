package cmd

import (
	"slices"
	"testing"
)

func TestWithoutValues(t *testing.T) {
	got := withoutValues([]string{"--rw", ".", "--env", "A=secret", "--env=B=secret", "--env", "C", "--"})
	if want := []string{"--rw", ".", "--env", "A", "--env=B", "--env", "C", "--"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
