package policy

import "testing"

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

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"rw", "rw", 0}, {"rww", "rw", 1}, {"ro", "rw", 1}, {"conect", "connect", 1}, {"abc", "", 3}, {"kitten", "sitting", 3},
		{"ab", "ba", 1}, {"abc", "acb", 1},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := distance(c.b, c.a); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
