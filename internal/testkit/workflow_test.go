package testkit

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMacWorkflow: what the workflow for macOS asks for exists: the variable with which nothing is
// skipped, and each test that it names, in one of the packages that it names for it.
func TestMacWorkflow(t *testing.T) {
	const root = "../../"
	text, err := os.ReadFile(root + ".github/workflows/macos.yml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "ZSBX_TEST_REQUIRE: "+string(Seatbelt)+"\n") {
		t.Error("tests are skipped where they need Seatbelt")
	}
	runs := regexp.MustCompile(`-run '\^TestMac\(([^)]*)\)\$' (.*) 2>&1`).FindAllStringSubmatch(string(text), -1)
	if len(runs) < 2 {
		t.Errorf("%d runs of tests by name", len(runs))
	}
	for _, run := range runs {
		var code []string
		for dir := range strings.FieldsSeq(run[2]) {
			files, _ := filepath.Glob(root + dir + "/*_test.go")
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				code = append(code, string(b))
			}
		}
		for name := range strings.SplitSeq(run[1], "|") {
			if !slices.ContainsFunc(code, func(s string) bool { return strings.Contains(s, "func TestMac"+name+"(") }) {
				t.Errorf("TestMac%s is not in %s", name, run[2])
			}
		}
	}
}
