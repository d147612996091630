package cmd

import (
	"fmt"

	"github.com/zsbx/zsbx/policy/shell"
	"github.com/zsbx/zsbx/track"
)

// checkTracker refuses names that are no tracker's; what is where it stands.
func checkTracker(what, name string) error {
	if !track.Kind(name).Valid() {
		return fmt.Errorf("%s %s: must be auto, domain, cgroup or subtree", what, shell.Quote(name))
	}
	return nil
}
