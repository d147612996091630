package tables

import (
	"reflect"
	"slices"
	"testing"
)

// TestRead reads a table with all that one may have.
func TestRead(t *testing.T) {
	got := Read("# no\n\n[a b] c: d\nx, y z,\n# no\nw\nkey: k, l\no: m\nv\n[e]\n")
	want := []Section{{Name: "a b", Note: "c: d", Entries: []string{"x", "y z", "w", "v"}, Keys: []Key{{"key", []string{"k", "l"}}, {"o", []string{"m"}}}}, {Name: "e"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTables looks for entries that are empty or stand twice in one list.
func TestTables(t *testing.T) {
	for name, table := range map[string][]Section{"baseline": Baseline(), "env": Env(), "guard": Guard(), "places": Places(), "presets": Presets(), "secrets": Secrets()} {
		for _, s := range table {
			lists := [][]string{s.Entries}
			for _, k := range s.Keys {
				lists = append(lists, k.Entries)
			}
			for _, list := range lists {
				list = slices.Sorted(slices.Values(list))
				if slices.Contains(list, "") || len(slices.Compact(list)) != len(list) {
					t.Errorf("%s, %s %s: %q", name, s.Name, s.Note, list)
				}
			}
			if len(s.Entries)+len(s.Keys) == 0 {
				t.Errorf("%s, %s: empty", name, s.Name)
			}
		}
	}
	if Find(Baseline(), "dotfiles") == nil || Find(Baseline(), "none") != nil {
		t.Error("a section is not found")
	}
}
