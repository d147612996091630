package nearest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDidYouMean(t *testing.T) {
	for _, c := range []struct{ typed, want string }{
		{"wr", "rw"}, {"raed", "read"}, {"nodejs", "node"}, {"rst", "rust"}, {"conect_tcp", "connect_tcp"},
		{"", ""}, {"x", ""}, {"zz", ""}, {"python", ""},
	} {
		if c.want != "" {
			c.want = "; did you mean " + c.want + "?"
		}
		if got := DidYouMean(c.typed, []string{"ro", "rw", "read", "node", "rust", "connect_tcp"}); got != c.want {
			t.Errorf("DidYouMean(%q) = %q, want %q", c.typed, got, c.want)
		}
	}
}

func TestNear(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"rw", "rw", 0}, {"rww", "rw", 1}, {"ro", "rw", 1}, {"conect", "connect", 1}, {"abc", "", 3}, {"kitten", "sitting", 3},
		{"ab", "ba", 1}, {"abc", "acb", 1},
	} {
		for wrong := range 5 {
			if near(c.a, c.b, wrong) != (wrong >= c.want) || near(c.b, c.a, wrong) != (wrong >= c.want) {
				t.Errorf("%q, %q: %d is not how near they are", c.a, c.b, c.want)
			}
		}
	}
}

// TestNearDrawn compares with a distance that is computed by a table, each row from the two before
// it.
func TestNearDrawn(t *testing.T) {
	distance := func(a, b string) int {
		d := make([][]int, len(a)+1)
		for i := range d {
			d[i] = make([]int, len(b)+1)
			for j := range d[i] {
				switch {
				case i == 0 || j == 0:
					d[i][j] = i + j
				case a[i-1] == b[j-1]:
					d[i][j] = d[i-1][j-1]
				default:
					d[i][j] = 1 + min(d[i-1][j-1], d[i-1][j], d[i][j-1])
				}
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d[i][j] = min(d[i][j], d[i-2][j-2]+1)
				}
			}
		}
		return d[len(a)][len(b)]
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching("[ab-d]{0,9}")
		a, b, wrong := word.Draw(t, "a"), word.Draw(t, "b"), rapid.IntRange(0, 4).Draw(t, "wrong")
		if got := near(a, b, wrong); got != (distance(a, b) <= wrong) {
			t.Fatalf("near(%q, %q, %d) = %t, the distance is %d", a, b, wrong, got, distance(a, b))
		}
	})
}
