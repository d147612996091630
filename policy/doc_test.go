package policy

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/tables"
)

// TestPolicyDocs checks docs/policy.md: the files in it are policies, and its
// list of variables is that of the code.
func TestPolicyDocs(t *testing.T) {
	data, err := os.ReadFile("../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	blocks := regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(doc, -1)
	if len(blocks) < 2 {
		t.Fatalf("%d files in the document", len(blocks))
	}
	for _, b := range blocks {
		mustTOML(t, b[1])
	}
	_, list, _ := strings.Cut(doc, "<!-- kept -->")
	list, _, _ = strings.Cut(list, "<!-- end -->")
	documented, known := quoted(list), slices.Clone(tables.Find(tables.Env, "kept"))
	known = slices.DeleteFunc(known, func(name string) bool { return strings.HasSuffix(name, "*") })
	slices.Sort(known)
	if len(known) < 10 || !slices.Equal(documented, known) {
		t.Errorf("the document has\n%q\nthe code has\n%q", documented, known)
	}
}

// quoted lists the names between pairs of backquotes, sorted.
func quoted(text string) []string {
	var names []string
	for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return names
}
