package resolve

import (
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/presets"
	"github.com/zsbx/zsbx/policy"
)

// sourceTemp is the origin of the rule for Host.TempDir.
const sourceTemp = "private temporary directory"

// fromFlag reports whether the origin is the command line.
func fromFlag(o policy.Origin) bool { return strings.HasPrefix(o.Source, "--") }

// guarded reports whether a rule is built in and depends on the home directory or on
// variables.
func guarded(r *policy.Rule) bool {
	return r.Origin.BuiltIn() && (r.Origin.Source != "baseline" || !strings.HasPrefix(r.Path, "/"))
}

// isAgent reports whether a rule is from a coding agent's preset. Only these may open the
// agents' logins.
func isAgent(r *policy.Rule) bool {
	name, ok := strings.CutPrefix(r.Origin.Source, "preset ")
	return ok && slices.ContainsFunc(presets.All(), func(p presets.Info) bool { return p.Agent && p.Name == name })
}
