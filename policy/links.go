package policy

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
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
	var warnings Errors
	for _, paths := range [][]Path{r.Paths, r.Net.Unix, r.Create} {
		for i := range paths {
			p := &paths[i]
			switch from := p.Rule.Origin; {
			case len(p.Links) == 0 || from.BuiltIn():
			case from.Line > 0 && filepath.Base(from.Source) == ProjectFile:
				if link := p.LinkOutOf(filepath.Dir(from.Source)); link != "" {
					return fmt.Errorf("%s: the link %s leads out of the project, to %s; "+
						"if you mean that, the policy has to name that place itself", from, link, p.Path)
				}
			default:
				if err := r.plantedDoor(p); err != nil {
					return err
				}
				if link := r.host.PlantedLink(p); link != "" {
					msg := fmt.Sprintf("the link %s leads to %s", link, p.Path)
					warnings = append(warnings, &Error{Origin: from, Code: CodePath, Msg: msg})
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
	link := r.PlantedLink(p)
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
	return &Error{Origin: p.Rule.Origin, Code: CodePath, Msg: msg}
}

// LinkOutOf returns the link in dir by which a path leads out of dir, or "".
func (p *Path) LinkOutOf(dir string) string {
	at := slices.IndexFunc(p.Links, func(link string) bool { return Within(link, dir) })
	if at < 0 || Within(p.Path, dir) {
		return ""
	}
	return p.Links[at]
}

// Project returns where commands work: the root of the outermost repository around the
// working directory, below the home directory or outside it, or else the working directory.
func (h *Host) Project() string {
	root := h.Dir
	for dir := h.Dir; h.Lstat != nil && !Within(h.Home, dir); dir = path.Dir(dir) {
		if h.mayBeRepository(dir) {
			root = dir
		}
		if dir == "/" {
			break
		}
	}
	return root
}

// PlantedLink returns the link by which a path leads out of the working directory or out
// of the project, or "". A command that could only write to the working directory may have
// put a link there that leads to the rest of the project. If the home directory is in the
// working directory, it always returns "".
func (h *Host) PlantedLink(p *Path) string {
	if len(p.Links) == 0 || Within(h.Home, h.Dir) {
		return ""
	}
	return cmp.Or(p.LinkOutOf(h.Dir), p.LinkOutOf(h.Project()))
}

// PlantedLink returns the link by which a path leads out of a directory where a command
// may have put that link, or "": that of Host.PlantedLink, or one in a tree that a user
// made writable.
func (r *Resolved) PlantedLink(p *Path) string {
	if link := r.host.PlantedLink(p); link != "" {
		return link
	}
	for i := range r.Paths {
		t := &r.Paths[i]
		if link := p.LinkOutOf(t.Path); link != "" && t.Access&Write != 0 && !t.Rule.Origin.BuiltIn() {
			return link
		}
	}
	return ""
}
