package policy

import (
	"strings"

	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/syntax"
)

// AnchorDenials makes the relative denials of a file in dir apply below dir as
// well as below the working directory: a project that denies "keys" means its
// own, wherever in it a command is run. dir is absolute, and the working
// directory is in it.
func (p *Policy) AnchorDenials(dir string) {
	for _, p := range p.parts() {
		for i, d := range p.FS.Deny {
			first, _, _ := strings.Cut(d.Value, "/")
			named := strings.HasPrefix(first, "$") && !strings.HasPrefix(first, "$$")
			if first == "" || first == "~" || first == "cwd" || named {
				continue
			}
			d.Value = strings.TrimSuffix(glob.QuoteMeta(syntax.Literal(dir)), "/") + "/" + d.Value
			if first == "**" { // covers the working directory, too
				p.FS.Deny[i] = d
			} else {
				p.FS.Deny = append(p.FS.Deny, d)
			}
		}
	}
}
