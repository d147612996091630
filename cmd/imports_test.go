package cmd

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestImports holds what docs/architecture.md promises about who imports whom.
func TestImports(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go command")
	}
	const mod = "github.com/zsbx/zsbx/"
	for _, c := range []struct {
		pkg     string
		foreign []string
	}{
		{"policy", []string{"github.com/spf13/cobra", "github.com/spf13/viper", "golang.org/x/sys/unix", mod + "enforce", mod + "track", mod + "cmd"}},
		{"enforce", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "track", mod + "cmd"}},
		{"track", []string{"github.com/spf13/cobra", "github.com/spf13/viper", mod + "policy", mod + "enforce", mod + "cmd"}},
		{"enforce/fork", []string{mod + "policy", mod + "enforce", mod + "track", mod + "cmd"}},
	} {
		out, err := exec.Command("go", "list", "-deps", mod+c.pkg).Output()
		if err != nil && os.Getuid() == 0 {
			t.Fatalf("go list: %v", err)
		}
		if err != nil {
			t.Skipf("go list: %v", err) // an ordinary user may have no module cache; root's run holds it
		}
		deps := strings.Fields(string(out))
		if len(deps) < 2 {
			t.Fatalf("%s has no dependencies: %q", c.pkg, out)
		}
		for _, f := range c.foreign {
			if slices.Contains(deps, f) {
				t.Errorf("%s imports %s", c.pkg, f)
			}
		}
	}
}
