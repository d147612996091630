package policy

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
)

// A command that may write somewhere may leave a symbolic link there. The next
// run must not follow it to a place that nobody meant: neither to open it to a
// command, nor to make files or directories there. The functions here find such
// links; Resolved.EscapingLinks is the rule for what a policy names.

// ProjectFile is the name of a project's policy.
const ProjectFile = ".zsbx.toml"

// EscapingLinks looks at rules that lead out of the project by a symbolic link in
// it. In a project's policy such a rule is an error: the content that was trusted
// says nothing of where the link leads. Elsewhere it is a warning, which says where
// the rule leads, but an error where nobody else should think of a rule (Unwise).
func (r *Resolved) EscapingLinks() (warnings Errors, err error) {
	for _, paths := range [][]Path{r.Paths, r.Net.Unix, r.Create} {
		for i := range paths {
			p := &paths[i]
			switch from := p.Rule.Origin; {
			case len(p.Links) == 0 || from.BuiltIn():
			case from.Line > 0 && filepath.Base(from.Source) == ProjectFile:
				if link := p.LinkOutOf(filepath.Dir(from.Source)); link != "" {
					return warnings, fmt.Errorf("%s: the link %s leads out of the project, to %s; if that is meant, the policy has to name that place itself", from, link, p.Path)
				}
			default:
				if err := r.plantedDoor(p); err != nil {
					return warnings, err
				}
				if link := r.host.PlantedLink(p); link != "" {
					warnings = append(warnings, &Error{Origin: from, Code: CodePath, Msg: fmt.Sprintf("the link %s leads to %s", link, p.Path)})
				}
			}
		}
	}
	return warnings, nil
}

// plantedDoor is the error for a rule that leads to what nobody opens by chance, by a
// link that a command before this one may have put there, or nil.
func (r *Resolved) plantedDoor(p *Path) error {
	link := r.PlantedLink(p)
	if link == "" {
		return nil
	}
	why := r.Unwise()(p.Path, p.Access, p.Mode.IsDir())
	if why == "" && p.Access == 0 {
		why = p.Path + " is no socket of the project's"
	}
	if why == "" {
		return nil
	}
	return &Error{Origin: p.Rule.Origin, Code: CodePath, Msg: fmt.Sprintf("the link %s, which a command may have put there, leads to %s: %s; if that is meant, name that place itself", link, p.Path, why)}
}

// LinkOutOf is the link in dir by which a path leads out of dir, "" for none.
func (p *Path) LinkOutOf(dir string) string {
	at := slices.IndexFunc(p.Links, func(link string) bool { return Within(link, dir) })
	if at < 0 || Within(p.Path, dir) {
		return ""
	}
	return p.Links[at]
}

// Project is where commands work: the root of the outermost repository around the working
// directory, short of the home directory, or without one the working directory.
func (h *Host) Project() string {
	root := h.Dir
	for dir := h.Dir; h.Lstat != nil && !Within(h.Home, dir); dir = path.Dir(dir) {
		if _, err := h.Lstat(path.Join(dir, ".git")); err == nil {
			root = dir
		}
		if dir == "/" {
			break
		}
	}
	return root
}

// PlantedLink is the link by which a path leads out of the working directory or out of the
// project, "" for none, and for any where the working directory holds the home directory. A
// command that could only write to the working directory may have put a link there that
// leads to the rest of the project.
func (h *Host) PlantedLink(p *Path) string {
	if len(p.Links) == 0 || Within(h.Home, h.Dir) {
		return ""
	}
	return cmp.Or(p.LinkOutOf(h.Dir), p.LinkOutOf(h.Project()))
}

// PlantedLink is the link by which a path leads out of a directory where a
// command may have put that link, "" for none: as Host.PlantedLink has it, or out of a
// tree that a user made writable.
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
