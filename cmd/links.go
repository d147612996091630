package cmd

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/zsbx/zsbx/policy"
	"github.com/zsbx/zsbx/policy/shell"
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
			if err := projectLink(p); err != nil {
				return err
			}
			if isProjects(p) || isBuiltIn(p) || policy.Within(r.Home, r.Dir) {
				continue
			}
			if link := leadsOut(p, r.Dir); link != "" {
				a.say.warn("%s: the link %s leads to %s", p.Rule.Origin, link, p.Path)
			}
		}
	}
	return nil
}

// isProjects tells a rule of a project policy.
func isProjects(p *policy.Path) bool {
	return p.Rule.Origin.Line > 0 && filepath.Base(p.Rule.Origin.Source) == projectPolicyFile
}

// isBuiltIn tells a rule of the baseline or of a preset.
func isBuiltIn(p *policy.Path) bool {
	src := p.Rule.Origin.Source
	return src == "baseline" || strings.HasPrefix(src, "preset ")
}

// projectLink is the error for a rule of a project policy that leads out of
// the project, or nil.
func projectLink(p *policy.Path) error {
	if !isProjects(p) {
		return nil
	}
	link := leadsOut(p, filepath.Dir(p.Rule.Origin.Source))
	if link == "" {
		return nil
	}
	return &failure{
		code: codePolicy, status: exitFailed,
		err: fmt.Errorf("%s: the link %s leads out of the project, to %s; if that is meant, the policy has to name that place itself", p.Rule.Origin, link, p.Path),
	}
}

// leadsOut is the link in dir by which a rule leads out of it, "" for none.
func leadsOut(p *policy.Path, dir string) string {
	if policy.Within(p.Path, dir) {
		return ""
	}
	for _, link := range p.Links {
		if policy.Within(link, dir) {
			return link
		}
	}
	return ""
}

// throughLink is the link by which a path leads out of a directory where a
// command may have put that link, "" for none: out of the working directory,
// unless that holds the home directory, or out of a tree that a user made
// writable.
func throughLink(r *policy.Resolved, p *policy.Path) string {
	if !policy.Within(r.Home, r.Dir) {
		if link := leadsOut(p, r.Dir); link != "" {
			return link
		}
	}
	for i := range r.Paths {
		t := &r.Paths[i]
		if t.Access&policy.Write == 0 || isBuiltIn(t) {
			continue
		}
		if link := leadsOut(p, t.Path); link != "" {
			return link
		}
	}
	return ""
}

// judgeVariables refuses variables that have zsbx make its own files through a
// link which leads out of the working directory: a command may have put it
// there.
func (a *app) judgeVariables(h policy.Host) error {
	if policy.Within(h.Home, h.Dir) {
		return nil
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR"} {
		v := a.getenv(name)
		if !filepath.IsAbs(v) {
			continue
		}
		p := trail(h, v)
		if link := leadsOut(&p, h.Dir); link != "" {
			return &failure{
				code: codePolicy, status: exitFailed, hint: "export " + name + "=" + shell.Quote(p.Path),
				err: fmt.Errorf("%s: the link %s leads out of the working directory, to %s", name, link, p.Path),
			}
		}
	}
	return nil
}

// trail follows the links of an absolute path, which need not exist.
func trail(h policy.Host, path string) policy.Path {
	real, links, _, _ := h.Trail(filepath.Clean(path))
	return policy.Path{Path: real, Links: links}
}
