package apply

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/layer"
)

const dirMode = fs.ModeDir | 0o755

// sample is a layer with a directory of another mode, a new one, and a removed one with a conflict in it.
func sample() ([]layer.Change, []layer.Tree) {
	was := &layer.State{Mode: 0o644}
	wasDir := &layer.State{Mode: dirMode}
	return []layer.Change{
		{Path: "d", Op: layer.Modify, Type: fs.ModeDir | 0o700, Was: wasDir},
		{Path: "d/x", Op: layer.Add, Type: 0o644},
		{Path: "gone", Op: layer.Remove, Type: dirMode, Was: wasDir},
		{Path: "gone/x", Op: layer.Remove, Type: 0o644, Was: was, Conflict: "changed"},
		{Path: "new", Op: layer.Add, Type: dirMode},
		{Path: "new/a", Op: layer.Add, Type: 0o644},
		{Path: "new/b", Op: layer.Add, Type: 0o644},
	}, []layer.Tree{{Path: "/t"}}
}

// TestOnly: what is chosen is made, with the new directories that it needs, and nothing that is below it or beside.
func TestOnly(t *testing.T) {
	for _, c := range []struct {
		chosen, want []string
	}{
		{[]string{"d"}, []string{"d"}},
		{[]string{"d/x"}, []string{"d/x"}},
		{[]string{"new/b"}, []string{"new", "new/b"}},
		{[]string{"new"}, []string{"new"}},
		{[]string{}, nil},
	} {
		changes, trees := sample()
		only := func(x *layer.Change) bool { return slices.Contains(c.chosen, x.Path) }
		p := newPlan(changes, nil, trees, Options{Only: only})
		var got []string
		var add func([]*node)
		add = func(all []*node) {
			for _, n := range all {
				got = append(got, n.Path)
				add(n.below)
			}
		}
		add(p.modes)
		add(p.units)
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, not %q", c.chosen, got, c.want)
		}
	}
}

// TestDeclined: a directory stays, and is asked about no more, if all that stays in it was decided so.
func TestDeclined(t *testing.T) {
	for _, c := range []struct {
		ours      []string
		left      int
		conflicts int
		declined  []string
	}{
		{nil, 7, 2, nil},
		{[]string{"/t/gone/x"}, 5, 0, []string{"gone/x", "gone"}},
		{[]string{"/t/gone"}, 5, 0, []string{"gone/x", "gone"}},
	} {
		changes, trees := sample()
		p := newPlan(changes, nil, trees, Options{Ours: c.ours})
		var got []string
		for i := range p.ours {
			got = append(got, p.ours[i].Path)
		}
		if p.res.Left != c.left || len(p.res.Conflicts) != c.conflicts || !slices.Equal(got, c.declined) {
			t.Errorf("%q: %+v, declined %q", c.ours, p.res, got)
		}
	}
	changes, trees := sample()
	changes[3].Declined = true
	if p := newPlan(changes, nil, trees, Options{}); p.res.Left != 5 || p.res.Conflicts != nil {
		t.Errorf("declined before: %+v", p.res)
	}
}

// TestMistakes: all paths that mean nothing are named.
func TestMistakes(t *testing.T) {
	changes, trees := sample()
	o := Options{
		Paths:  []string{"/t/d", "/t/none", "/other"},
		Theirs: []string{"/t/d/x", "/t/gone"},
		Ours:   []string{"/t/gone"},
	}
	var got []string
	for _, m := range o.check(changes, trees) {
		got = append(got, m.Option+" "+m.Path)
	}
	want := []string{" /t/none", " /other", "theirs /t/d/x", "theirs /t/gone", "ours /t/gone"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	o = Options{Paths: []string{"/t/d", "/"}, Theirs: []string{"/t/gone/x"}}
	if wrong := o.check(changes, trees); wrong != nil {
		t.Error(wrong)
	}
}
