package resolve

import (
	"fmt"
	"path/filepath"

	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/policy"
)

// A command that may write somewhere may leave a symbolic link there. The next run must
// not follow it to a place that the user did not mean, either to open that place to a
// command, or to make files or directories there. The functions here find such links.
// Resolved.CheckLinks decides about the paths of a policy.

// ProjectFile is the name of a project's policy.
const ProjectFile = ".zsbx.toml"

// CheckLinks checks rules that lead out of the project by a symbolic link in it. In a
// project's policy such a rule is an error, because the trusted content does not say where
// the link leads. Elsewhere it adds a warning that says where the rule leads, or returns an
// error if only the user should allow that place (Unwise).
func (r *Resolved) CheckLinks() error {
	var warnings policy.Errors
	for _, paths := range [][]Path{r.Paths, r.Net.Unix, r.Create} {
		for i := range paths {
			p := &paths[i]
			switch from := p.Rule.Origin; {
			case len(p.Links) == 0 || from.BuiltIn():
			case from.Line > 0 && filepath.Base(from.Source) == ProjectFile:
				if link := host.LinkOutOf(p.Path, p.Links, filepath.Dir(from.Source)); link != "" {
					return fmt.Errorf("%s: the link %s leads out of the project, to %s; "+
						"if you mean that, the policy has to name that place itself", from, link, p.Path)
				}
			default:
				if err := r.plantedDoor(p); err != nil {
					return err
				}
				if link := r.host.PlantedLink(p.Path, p.Links); link != "" {
					msg := fmt.Sprintf("the link %s leads to %s", link, p.Path)
					warnings = append(warnings, &policy.Error{Origin: from, Code: policy.CodePath, Msg: msg})
				}
			}
		}
	}
	r.Warnings = append(warnings, r.Warnings...)
	return nil
}

// plantedDoor returns an error for a rule that leads, by a link that an earlier command
// may have put there, to what only the user should allow. Otherwise it returns nil.
func (r *Resolved) plantedDoor(p *Path) error {
	link := r.PlantedLink(p.Path, p.Links)
	if link == "" {
		return nil
	}
	why := r.Unwise()(p.Path, p.Access, p.Mode.IsDir())
	if why == "" && p.Access == 0 {
		why = p.Path + " is not a socket of the project"
	}
	if why == "" {
		return nil
	}
	msg := fmt.Sprintf("the link %s, which a command may have put there, leads to %s: %s; "+
		"if you mean that, name that place itself", link, p.Path, why)
	return &policy.Error{Origin: p.Rule.Origin, Code: policy.CodePath, Msg: msg}
}

// PlantedLink returns the link by which a path leads out of a directory where a command
// may have put that link, or "": that of Host.PlantedLink, or one in a tree that a user
// made writable.
func (r *Resolved) PlantedLink(p string, links []string) string {
	if link := r.host.PlantedLink(p, links); link != "" {
		return link
	}
	for i := range r.Paths {
		t := &r.Paths[i]
		if t.Access&policy.Write == 0 || t.Rule.Origin.BuiltIn() {
			continue
		}
		if link := host.LinkOutOf(p, links, t.Path); link != "" {
			return link
		}
	}
	return ""
}
