package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
)

// TestMakeSelf: without HOME, zsbx's own directories are made as with it, so that they can be
// protected.
func TestMakeSelf(t *testing.T) {
	for _, env := range []string{"HOME=" + t.TempDir(), "NOHOME=", "HOME=relative"} {
		dir := filepath.Join(t.TempDir(), ".config/zsbx")
		if err := makeZsbxDir(&host.Host{Env: []string{env}}, dir); err != nil {
			t.Errorf("%s: %v", env, err)
		}
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s: %v", env, err)
		}
	}
	gone := filepath.Join(t.TempDir(), "gone")
	_ = makeZsbxDir(&host.Host{Env: []string{"HOME=" + gone}}, gone+"/.config/zsbx")
	if _, err := os.Stat(gone); err == nil {
		t.Error("a home directory was made")
	}
}

// TestSelfDirs: the places of this environment and those without its variables, also in the home
// directory of the user database.
func TestSelfDirs(t *testing.T) {
	h := &host.Host{Home: "/h", Env: []string{"HOME=/h", "XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=relative"}}
	t.Setenv("TMPDIR", "/t")
	var got []string
	for _, d := range zsbxDirs(h) {
		got = append(got, d.path)
	}
	want := []string{"/h/.config/zsbx", "/h/.local/state/zsbx", "/c/zsbx"}
	if home := host.PasswdHome(); home != "" {
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
