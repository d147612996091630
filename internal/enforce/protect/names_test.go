package protect

import (
	"os"
	"strings"
	"testing"
)

// TestProtectedNamesDocs checks that docs/protected.md has each protected name of a project, and
// that the code says why.
func TestProtectedNamesDocs(t *testing.T) {
	data, err := os.ReadFile("../../../docs/protected.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, g := range projectGroups {
		row := "| " + g.what + " | `" + strings.Join(g.names, "`, `") + "` |\n"
		if g.why == "" || !strings.Contains(string(data), row) {
			t.Errorf("docs/protected.md lacks\n%s", row)
		}
		for _, n := range g.names {
			if seen[n] {
				t.Errorf("%s stands there twice", n)
			}
			seen[n] = true
		}
	}
	if row := "`" + strings.Join(reportedNames, "`, `") + "`."; !strings.Contains(strings.ReplaceAll(string(data), "\n", " "), row) {
		t.Errorf("docs/protected.md lacks %s", row)
	}
}
