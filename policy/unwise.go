package policy

import (
	"io/fs"

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
	var tokens []string
	for _, pattern := range tables.Find(tables.Secrets(), secretTrees) {
		_, list := h.tokenFiles(pattern)
		for _, f := range list() {
			if real, _, err := h.RealPath(f); err == nil {
				tokens = append(tokens, real)
			}
		}
	}
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
