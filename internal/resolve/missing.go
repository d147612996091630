package resolve

import (
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/shell"
	"github.com/zsbx/zsbx/internal/tree"
	"github.com/zsbx/zsbx/policy"
)

// missingHint returns what to type if a path is missing. A directory to be written can be
// made, by hand or by zsbx, where its links lead, unless a file is in the way.
func missingHint(rule *policy.Rule, written string, pl *host.Walked) string {
	if host.IsPattern(written) {
		return ""
	}
	if rule.Access&policy.Write == 0 {
		if fromFlag(rule.Origin) {
			return "--ignore-missing"
		}
		return "{ path = " + tree.QuoteTOML(rule.Path) + ", optional = true }"
	}
	if pl.Gone == host.NotDir {
		return ""
	}
	mkdir := "mkdir -p " + shell.Quote(pl.Path)
	if fromFlag(rule.Origin) {
		return mkdir + "\n--create-missing"
	}
	return mkdir
}
