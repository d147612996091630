package glob

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLiterals: names without wildcards can be looked up, unless something else matches there too.
func TestLiterals(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		want     []string
		ok       bool
	}{
		{[]string{"/**/.env"}, []string{".env"}, true},
		{[]string{"/**/.env", "/**/key", "/d/.env"}, []string{".env", "key"}, true},
		{[]string{"/**/.env/x"}, nil, true},
		{[]string{"/**/.env", "/*/x/y"}, []string{".env"}, true},
		{[]string{"/**/.env", "/d/*.pem"}, nil, false},
		{[]string{"/**/.env", "/d/**"}, nil, false},
	} {
		var gs []Glob
		for _, p := range c.patterns {
			g, err := Parse(p)
			if err != nil {
				t.Fatal(err)
			}
			gs = append(gs, g)
		}
		got, ok := NewSet(gs).At("/d").Literals()
		slices.Sort(got)
		if !slices.Equal(got, c.want) || ok != c.ok {
			t.Errorf("%q: %q, %v", c.patterns, got, ok)
		}
	}
}

// TestGlobsAgree: a set matches what each of its patterns matches alone, and a walk skips no
// directory below which one could match.
func TestGlobsAgree(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "ab", "x.env", "*", "**", "a*", "*.env", "?", "[ab]"})
	plain := rapid.SampledFrom([]string{"a", "b", "ab", "x.env", "é"})
	rapid.Check(t, func(t *rapid.T) {
		var gs []Glob
		var patterns []string
		for _, names := range rapid.SliceOfN(rapid.SliceOfN(name, 1, 4), 1, 6).Draw(t, "patterns") {
			g, err := Parse("/" + strings.Join(names, "/"))
			if err != nil {
				t.Fatal(err)
			}
			gs, patterns = append(gs, g), append(patterns, strings.Join(names, "/"))
		}
		at, path := NewSet(gs).At("/"), ""
		for _, n := range rapid.SliceOfN(plain, 1, 6).Draw(t, "path") {
			path += "/" + n
			next, named := at.Enter(n)
			if at.Names(n) != named {
				t.Fatalf("%q of %q: %v, and as a file %v", path, patterns, named, !named)
			}
			if names, ok := at.Literals(); ok && slices.Contains(names, n) != named {
				t.Fatalf("%q of %q: %v, among the names %v", path, patterns, named, names)
			}
			if want := slices.ContainsFunc(gs, func(g Glob) bool { return g.Match(path) }); named != want {
				t.Fatalf("%q of %q: %v, each by itself %v", path, patterns, named, want)
			}
			if named {
				return
			}
			if len(next) == 0 && slices.ContainsFunc(gs, func(g Glob) bool { return g.Match(path+"/a/b") || g.Match(path+"/x.env") }) {
				t.Fatalf("%q of %q: left out", path, patterns)
			}
			if got := NewSet(gs).At(path); len(got) != len(next) {
				t.Fatalf("%q of %q: %d places, by steps %d", path, patterns, len(got), len(next))
			}
			at = next
		}
	})
}
