package cmd

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// judgeLinks looks at rules that lead out of the project by a symbolic link in
// it. A command that could write there may have put the link, so that the next
// run opens what nobody meant. In a project policy such a rule is an error:
// the content that was trusted says nothing of where the link leads. Elsewhere
// the user sees where the rule leads.
func (a *app) judgeLinks(r *policy.Resolved) error {
	for _, paths := range [][]policy.Path{r.Paths, r.Net.Unix} {
		for i := range paths {
			p := &paths[i]
			source := p.Rule.Origin.Source
			project := p.Rule.Origin.Line > 0 && filepath.Base(source) == projectPolicyFile
			dir := r.Dir
			if project {
				dir = filepath.Dir(source)
			}
			link := leadsOut(p, dir)
			switch {
			case link == "" || source == "baseline" || strings.HasPrefix(source, "preset "):
			case project:
				return &failure{
					code: codePolicy, status: exitFailed,
					err: fmt.Errorf("%s: the link %s leads out of the project, to %s; if that is meant, the policy has to name that place itself", p.Rule.Origin, link, p.Path),
				}
			case !below(r.Home, dir):
				a.say.warn("%s: the link %s leads to %s", p.Rule.Origin, link, p.Path)
			}
		}
	}
	return nil
}

// leadsOut is the link in dir by which a rule leads out of it, "" for none.
func leadsOut(p *policy.Path, dir string) string {
	if below(p.Path, dir) {
		return ""
	}
	for _, link := range p.Links {
		if below(link, dir) {
			return link
		}
	}
	return ""
}
