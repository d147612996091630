package enforce

import (
	"slices"
	"testing"
)

func TestIncludedPaths(t *testing.T) {
	const config = `
[core]
	path = no
[include]
	path = ../plain.cfg
	path = "with # blanks ; and \"marks\"" ; a comment
	Path=tight#comment
	# path = commented
[Include] path = "same line"
[includeIf "gitdir:~/a]b/"] ; comment
	path = ~/conditional
[include "sub"]
	path = sub
[user]
	path = no
`
	want := []string{"../plain.cfg", `with # blanks ; and "marks"`, "tight", "same line", "~/conditional", "sub"}
	if got := includedPaths(config); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
