package cmd

import (
	"testing"

	"github.com/zsbx/zsbx/enforce"
)

func TestListGaps(t *testing.T) {
	g := func(name, why string) enforce.Gap { return enforce.Gap{Name: name, Promise: "no " + name, Why: why} }
	for _, c := range []struct {
		gaps []enforce.Gap
		want string
	}{
		{nil, ""},
		{[]enforce.Gap{g("a", "x")}, "no a (a: x)"},
		{[]enforce.Gap{g("a", "x"), g("b", "y")}, "no a (a: x); no b (b: y)"},
		{[]enforce.Gap{g("a", "x"), g("b", "x")}, "no a (a) and no b (b): x"},
		{[]enforce.Gap{g("a", "x"), g("b", "y"), g("c", "y"), g("d", "y")}, "no a (a: x); no b (b), no c (c) and no d (d): y"},
	} {
		if got := listGaps(c.gaps); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
