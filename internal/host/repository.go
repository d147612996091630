package host

import (
	"cmp"
	"path"
	"slices"
)

// LinkOutOf returns the link in dir by which a path leads out of dir, or "".
func LinkOutOf(p string, links []string, dir string) string {
	at := slices.IndexFunc(links, func(link string) bool { return Within(link, dir) })
	if at < 0 || Within(p, dir) {
		return ""
	}
	return links[at]
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
func (h *Host) PlantedLink(p string, links []string) string {
	if len(links) == 0 || Within(h.Home, h.Dir) {
		return ""
	}
	return cmp.Or(LinkOutOf(p, links, h.Dir), LinkOutOf(p, links, h.Project()))
}

// Repository returns the nearest directory above a canonical path, or the path itself, that
// has a .git in it, or "". The home directory and those above it do not count. A .git that
// can't be looked at counts.
func (h *Host) Repository(p string) string {
	home := h.Way(h.Home).Path
	for dir := p; dir != "/" && !Within(home, dir); dir = path.Dir(dir) {
		if h.mayBeRepository(dir) {
			return dir
		}
	}
	return ""
}

// mayBeRepository reports whether a directory has a .git in it, or if that is unknown.
func (h *Host) mayBeRepository(dir string) bool {
	return h.Look(path.Join(dir, ".git")).Presence != Absent
}

// maxProjects is how many directories are looked at for repositories in them.
const maxProjects = 2000

// Holds returns a repository in a directory, at most two levels down, or a directory there
// that can't be looked into; "" for none.
func (h *Host) Holds(dir string) string {
	looked := 0
	return h.holds(dir, 2, &looked)
}

func (h *Host) holds(dir string, deep int, looked *int) string {
	if h.mayBeRepository(dir) {
		return dir
	}
	if deep == 0 || h.ReadDir == nil {
		return ""
	}
	entries, err := h.Entries(dir, -1)
	if err != nil && !Missing(err) {
		return dir
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		*looked++
		if *looked > maxProjects {
			return dir
		}
		if found := h.holds(path.Join(dir, e.Name()), deep-1, looked); found != "" {
			return found
		}
	}
	return ""
}
