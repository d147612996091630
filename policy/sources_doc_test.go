package policy

import (
	"os"
	"regexp"
	"testing"
)

// TestSourcesDocs checks that the files which docs/sources.md names exist.
func TestSourcesDocs(t *testing.T) {
	data, err := os.ReadFile("../docs/sources.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:cmd|policy|enforce|track|internal)/[A-Za-z0-9_./]+)`").FindAllStringSubmatch(string(data), -1)
	if len(named) < 20 {
		t.Errorf("only %d files are named", len(named))
	}
	for _, m := range named {
		if _, err := os.Stat("../" + m[1]); err != nil {
			t.Errorf("docs/sources.md: %v", err)
		}
	}
}
