package protect

import (
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/gitconfig"
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
	settings, bad := gitconfig.Read(config)
	if got := includedPaths(settings); !slices.Equal(got, want) || bad != 0 {
		t.Errorf("got %q, want %q; line %d", got, want, bad)
	}
}

// TestIncludedPathsContinued has what git's own parser accepts.
func TestIncludedPathsContinued(t *testing.T) {
	for config, want := range map[string]struct {
		paths []string
		bad   int
	}{
		"[include]\npath = ../i\\\n7":                      {[]string{"../i7"}, 0},
		"[include]\npath = a\\\r\n  b\r\n":                 {[]string{"a  b"}, 0},
		"[include]\npath = \"a\\\nb\" c \\\n d ; e\\\nx=1": {[]string{"ab c  d"}, 0},
		"[include]\n# path = a\\\npath = b":                {[]string{"b"}, 0},
		"[include]path=a\\\nb":                             {[]string{"ab"}, 0},
		"[core][include] path=a":                           {[]string{"a"}, 0},
		"[core] x\n[include]\npath=a":                      {[]string{"a"}, 0},
		"\ufeff[include]\npath=a\\tb":                      {[]string{"a\tb"}, 0},
		"[includeIf.x]path=a":                              {[]string{"a"}, 0},
		"[include]path=a\tb":                               {[]string{"a\tb", "a b"}, 0},
		"[include]\npath=a \\\n\n":                         {[]string{"a "}, 0},
		"[include]\npath=a \"\" # b":                       {[]string{"a "}, 0},
		"[include]\npath=a\f":                              {[]string{"a\f"}, 0},
		"[include] path":                                   {nil, 0},
		"[include]\npath=\\\n\\\n\\\na":                    {[]string{"a"}, 0},
		"[core]\nx = \"a\n[include]\npath=b":               {[]string{"b"}, 2},
		"[core]\nx = a\\q\n[include]\npath=b":              {[]string{"b"}, 2},
		"[core\n[include]\npath=b":                         {[]string{"b"}, 1},
		"[include]\n1path=b\npath=c":                       {[]string{"c"}, 2},
	} {
		settings, bad := gitconfig.Read(config)
		if got := includedPaths(settings); !slices.Equal(got, want.paths) || bad != want.bad {
			t.Errorf("%q: got %q, line %d; want %q, line %d", config, got, bad, want.paths, want.bad)
		}
	}
}
