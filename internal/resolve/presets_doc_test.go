package resolve

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/internal/testkit"
)

// TestPresetsDocs checks that the generated half of docs/presets.md is what the presets say. With
// -update it writes that half.
func TestPresetsDocs(t *testing.T) {
	const file, mark = "../../docs/presets.md", "do not edit below -->\n"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, old, ok := strings.Cut(string(data), mark)
	if !ok {
		t.Fatalf("%s: no mark", file)
	}
	var b strings.Builder
	b.WriteString("\n")
	var names []string
	for _, info := range presets.All() {
		names = append(names, info.Name)
	}
	b.WriteString(docNames(names) + ".\n")
	b.WriteString("\n## What stays writable\n\nWhat programs outside do with it, and what gives a command a separate cache:\n\n")
	for _, o := range outsideTable() {
		fmt.Fprintf(&b, "- %s: %s.", docNames(o.paths), o.trust)
		if o.own != "" {
			b.WriteString(" `" + o.own + "`")
		}
		b.WriteString("\n")
	}
	if b.String() == old {
		return
	}
	if !*testkit.Update {
		t.Fatalf("%s is out of date: run go test ./internal/resolve -run TestPresetsDocs -update", file)
	}
	if err := os.WriteFile(file, []byte(head+mark+b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// docNames writes names, separated by commas.
func docNames(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}
