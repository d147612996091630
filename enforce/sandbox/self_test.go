package sandbox

import (
	"slices"
	"testing"

	"github.com/zsbx/zsbx/policy"
)

// TestSelfDirs: the places of this environment and those without its variables,
// in the home directory of the user database too.
func TestSelfDirs(t *testing.T) {
	h := &policy.Host{Home: "/h", Env: []string{"HOME=/h", "XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=relative"}}
	t.Setenv("TMPDIR", "/t")
	var got []string
	for _, d := range selfDirs(h) {
		got = append(got, d.path)
	}
	want := []string{"/h/.config/zsbx", "/h/.local/state/zsbx", "/c/zsbx"}
	if home := policy.PasswdHome(); home != "" {
		want = append(want, home+"/.config/zsbx", home+"/.local/state/zsbx")
	}
	for _, p := range want {
		if !slices.Contains(got, p) {
			t.Errorf("%s is missing in %q", p, got)
		}
	}
	if n := len(slices.Compact(slices.Sorted(slices.Values(got)))); n != len(got) || n != len(want)+2 {
		t.Errorf("got %q", got)
	}
}
