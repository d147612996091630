package policy

import (
	"io/fs"
	"path"
	"strings"

	"github.com/zsbx/zsbx/policy/internal/tables"
)

// Unwise gives a function that says why nobody but the user should think of a rule
// for a canonical path, or "". A directory counts with all that lies in it: places of
// secrets, files with tokens in toolchains, and, to write, what is on PATH and what
// programs outside act upon. The machine is looked at once, as it is now.
func (r *Resolved) Unwise() func(p string, a Access, dir bool) string {
	if r.host.Lstat == nil {
		return func(string, Access, bool) string { return "it can't be looked at" }
	}
	h := r.host
	g := h.newGuard()
	g.search = h.realSearchPath()
	tokens := h.tokenFiles()
	return func(p string, a Access, dir bool) string {
		asked := &Policy{FS: FS{Rules: optional(Origin{}, Read, literal(p))}}
		if err := asked.encodable(asked.tree()); err != nil {
			return err.Error()
		}
		if s := g.secret(p, false); s != "" {
			return s + " holds secrets"
		}
		for _, t := range tokens {
			if Within(t, p) || Within(p, t) {
				return t + " holds secrets"
			}
		}
		if a&Write == 0 {
			return ""
		}
		at := Path{Path: p}
		if dir {
			at.Mode = fs.ModeDir
		}
		if on := g.onPATH(at); on != "" {
			return on + " is on PATH"
		}
		if place := g.actedUpon(&at); place != "" {
			return "programs outside act upon " + place
		}
		return ""
	}
}

// tokenFiles are the files with tokens in presets' trees that there are, canonical.
func (h *Host) tokenFiles() []string {
	var all []string
	for _, pattern := range tables.Find(tables.Secrets(), secretTrees) {
		written := h.tildePath(expandDefault(h, pattern))
		dir, rest, wild := strings.Cut(written, "/*")
		found := []string{written}
		if wild {
			found = nil
			if h.ReadDir == nil {
				continue
			}
			entries, err := h.ReadDir(dir)
			if err != nil {
				continue
			}
			for _, e := range entries {
				found = append(found, dir+"/"+e.Name()+rest)
			}
		}
		for _, f := range found {
			if !path.IsAbs(f) {
				continue
			}
			if real, _, err := h.realPath(f); err == nil {
				if _, err := h.Lstat(real); err == nil {
					all = append(all, real)
				}
			}
		}
	}
	return all
}
