package protect

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/zsbx/zsbx/internal/host"
)

// TestManyModules: all submodules and linked worktrees of a repository are protected, also behind
// a link. Of what is beyond a bound that is said.
func TestManyModules(t *testing.T) {
	h, err := host.ThisHost()
	if err != nil {
		t.Fatal(err)
	}
	const many = host.MaxListed + 5
	for kind, last := range map[string]string{"modules": "config", "worktrees": "config.worktree"} {
		tree := h.Way(t.TempDir()).Path
		write(t, tree+"/.git/config", "")
		configs := []string{tree + "/store/linked/" + last}
		for i := range many {
			configs = append(configs, fmt.Sprintf("%s/.git/%s/x%d/%s", tree, kind, i, last))
		}
		for _, p := range configs {
			write(t, p, "")
		}
		if err := os.Symlink("../../store/linked", tree+"/.git/"+kind+"/linked"); err != nil {
			t.Fatal(err)
		}
		set := find(&h, tree)
		for _, p := range configs {
			if !covered(&set, p) {
				t.Errorf("%s is open", p)
			}
		}
		if len(set.Facts) > 0 {
			t.Errorf("%s: facts: %+v", kind, set.Facts)
		}
	}
	tree := h.Way(t.TempDir()).Path
	for i := range nestedModules + 1 {
		write(t, tree+"/.git/worktrees/file"+strconv.Itoa(i), "")
	}
	if set := find(&h, tree); len(set.Facts) != 1 || !strings.Contains(set.Facts[0].Promise, "submodules and worktrees") {
		t.Errorf("beyond the bound: %+v", set.Facts)
	}
}
