package resolve

import (
	"slices"
	"testing"
)

// TestEnvWith: Java's option is left out for a command with a /tmp of its own, an option of the
// user stays, and the result of Resolve is not changed.
func TestEnvWith(t *testing.T) {
	option := javaOptions + "=" + javaTemp("/tmp/x")
	env := []string{"HOME=/h", option, "TMPDIR=/tmp/x"}
	r := &Resolved{TempDir: "/tmp/x", Env: slices.Clone(env)}
	if got := r.EnvWith(true); !slices.Equal(got, []string{"HOME=/h", "TMPDIR=/tmp/x"}) || !slices.Equal(r.Env, env) {
		t.Errorf("%q, and Env is %q", got, r.Env)
	}
	if got := r.EnvWith(false); !slices.Equal(got, env) {
		t.Errorf("%q", got)
	}
	own := &Resolved{TempDir: "/tmp/x", Env: []string{javaOptions + "=-Dx=y"}}
	if got := own.EnvWith(true); !slices.Equal(got, own.Env) {
		t.Errorf("the user's option: %q", got)
	}
}
