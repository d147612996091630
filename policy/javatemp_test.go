package policy

import (
	"slices"
	"testing"
)

// TestNameJavaTemp: the option is removed and comes back in its place, and an option of the user
// stays.
func TestNameJavaTemp(t *testing.T) {
	option := javaOptions + "=" + javaTemp("/tmp/x")
	env := []string{"HOME=/h", option, "TMPDIR=/tmp/x"}
	r := &Resolved{TempDir: "/tmp/x", Env: env}
	for _, needed := range []bool{true, false, false, true, true, false} {
		r.NameJavaTemp(needed)
		if slices.Contains(r.Env, option) != needed || len(r.Env) != map[bool]int{true: 3, false: 2}[needed] {
			t.Errorf("needed %t: %q", needed, r.Env)
		}
		if needed && !slices.Equal(r.Env, env) {
			t.Errorf("another order: %q", r.Env)
		}
	}
	own := &Resolved{TempDir: "/tmp/x", Env: []string{javaOptions + "=-Dx=y"}}
	for _, needed := range []bool{false, true} {
		own.NameJavaTemp(needed)
		if len(own.Env) != 1 {
			t.Errorf("the user's option: %q", own.Env)
		}
	}
}
