package policy

import (
	"os"
	"strings"
	"testing"
)

// TestDocFile checks that the file in the package's documentation is one.
func TestDocFile(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var file strings.Builder
	in := false
	for line := range strings.Lines(string(doc)) {
		text, indented := strings.CutPrefix(line, "//\t")
		in = in && indented || strings.HasPrefix(text, "presets =")
		if in {
			file.WriteString(text)
		}
	}
	p := mustTOML(t, file.String())
	if len(p.FS.Rules) != 4 || p.Linux == nil || p.MacOS == nil || p.Limits.MaxOutput != 10<<20 {
		t.Errorf("read %+v of\n%s", p, file.String())
	}
}
