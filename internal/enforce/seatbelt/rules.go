package seatbelt

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// byZsbx returns the origin of rules that no policy asked for.
func byZsbx(what string) policy.Origin { return policy.Origin{Source: "zsbx: " + what} }

// lookups makes allowed paths reachable. Programs give up if they can't stat the directories
// above a file, and following a symbolic link needs the right to read its metadata.
func (w *sbpl) lookups(r *resolve.Resolved) {
	seen := make(map[string]policy.Origin)
	add := func(from policy.Origin, names ...string) {
		for _, n := range names {
			if _, ok := seen[n]; !ok && n != "" {
				seen[n] = from
			}
		}
	}
	dir := w.optionalPath(r.Dir, byZsbx("working directory"))
	add(byZsbx("working directory"), append(ancestors(dir), dir)...)
	for _, p := range append(r.Paths[:len(r.Paths):len(r.Paths)], r.Net.Unix...) {
		from := p.Rule.Origin
		add(from, ancestors(w.path(p.Path, from))...)
		for _, l := range p.Links {
			c := w.path(l, from)
			add(from, append(ancestors(c), c)...)
		}
	}
	w.section("names of the directories above, and of symbolic links on the way")
	for _, p := range slices.Sorted(maps.Keys(seen)) {
		w.allow([]string{"file-read-metadata"}, seen[p].String(), w.filter("literal", p, seen[p]))
	}
	if from := byZsbx("getcwd(3) opens it"); dir != "" {
		w.allow([]string{"file-read-data"}, from.Source, w.filter("literal", dir, from))
	}
}

// path returns the kernel's spelling of p, or "" after an error.
func (w *sbpl) path(p string, from policy.Origin) string {
	c, err := Path(p)
	if err != nil {
		w.fail(p, from, err)
		return ""
	}
	return c
}

// optionalPath is path for a p that may be "".
func (w *sbpl) optionalPath(p string, from policy.Origin) string {
	if p == "" {
		return ""
	}
	return w.path(p, from)
}

// paths writes one rule for each path. Rights add up, as they do for Landlock, so the order
// does not matter.
func (w *sbpl) paths(r *resolve.Resolved) {
	w.section("files: what the policy allows")
	for _, p := range r.Paths {
		w.allow(pathOps(p.Access, p.Mode), origin(p.Rule.Origin, p.Rule.Path), w.tree(p))
	}
}

// tree returns the filter for a path: a directory with all that is in it, or one file.
func (w *sbpl) tree(p resolve.Path) string {
	name := "literal"
	if p.Mode.IsDir() {
		name = "subpath"
	}
	return w.filter(name, w.path(p.Path, p.Rule.Origin), p.Rule.Origin)
}

// pathOps returns the operations of an access. AccessOps must deny all of them, wildcards and
// leaves, so that denials override them. A device can be written and controlled, but not
// removed or given away.
func pathOps(a policy.Access, mode fs.FileMode) []string {
	var ops []string
	device := mode&fs.ModeDevice != 0
	if a&policy.Read != 0 {
		ops = append(ops, "file-read*")
		if !device {
			ops = append(ops, "file-clone")
		}
	}
	if a&policy.Write != 0 {
		if device {
			ops = append(ops, "file-write-data", "file-ioctl")
		} else {
			ops = append(ops, "file-write*", "file-link")
			if mode.IsDir() { // making a socket is like making a file
				ops = append(ops, "network-bind", "network-inbound")
			}
		}
	}
	if a&policy.Exec != 0 {
		ops = append(ops, "process-exec*", "file-map-executable")
	}
	return ops
}

// AccessOps returns all operations on a path that a policy can allow. A denial names all of
// them, wildcards and leaves: see Profile.
func AccessOps() []string {
	return slices.Concat(fingerprint.ReadOps(), fingerprint.WriteOps(), []string{
		"process-exec*", "process-exec", "file-map-executable", "file-clone", "file-ioctl", "network-outbound",
	})
}

// origin returns the comment of a rule: who wrote it and how.
func origin(o policy.Origin, text string) string {
	if text == "" {
		return o.String()
	}
	return fmt.Sprintf("%s %s", o, text)
}

// denials writes what the policy denies, after all that it allows.
func (w *sbpl) denials(r *resolve.Resolved, o Options) {
	if len(r.Deny) == 0 {
		return
	}
	w.section("files: what the policy denies")
	for _, d := range slices.Concat(r.Deny, o.Deny) {
		w.denyPath(AccessOps(), d)
	}
	for _, p := range o.Matched {
		w.pinAncestors(w.path(p, byZsbx("denied")), p)
	}
}

// denyPath denies operations on what d matches and all below it. It also denies moving the
// writable directories above it, since the rule would not match another name.
func (w *sbpl) denyPath(ops []string, d resolve.DenyPath) {
	from := d.Deny.Origin
	why := origin(from, d.Deny.Value)
	if !d.Glob {
		c := w.path(d.Pattern, from)
		w.deny(ops, why, w.filter("literal", c, from), w.filter("subpath", c, from))
		w.pinAncestors(c, why)
		w.keepWhole(ops, c, why)
		return
	}
	g, err := glob.Parse(d.Pattern)
	if err != nil {
		w.fail(d.Pattern, from, err)
		return
	}
	fixed, rest := SplitGlob(g)
	base := w.path(fixed, from)
	re, err := GlobRegex(base, rest)
	if err != nil {
		w.fail(d.Pattern, from, err)
		return
	}
	w.deny(ops, why, w.filter("regex", re, from))
	w.pinAncestors(strings.TrimSuffix(base, "/")+"/x", why)
	w.keepWhole(ops, base, why, "(require-all (vnode-type DIRECTORY) "+w.filter("subpath", base, from)+")")
}

// keepWhole denies cloning the directories above p, and what more matches. A clone of a
// directory has all that is in it, and the kernel checks only the directory itself
// (clonefile(2)).
func (w *sbpl) keepWhole(ops []string, p, why string, more ...string) {
	if !slices.Contains(ops, "file-clone") {
		return
	}
	for _, a := range ancestors(p) {
		if a != "/" && !w.whole[a] {
			w.whole[a] = true
			more = append(more, w.filter("literal", a, byZsbx("above a denied path")))
		}
	}
	if len(more) > 0 {
		w.deny([]string{"file-clone"}, "above "+why, more...)
	}
}

// pinAncestors denies removing and renaming the directories between a
// writable root and p.
func (w *sbpl) pinAncestors(p, why string) {
	for _, a := range ancestors(p) {
		if w.pinned[a] || !w.writable(a) {
			continue
		}
		w.pinned[a] = true
		w.deny([]string{"file-write-unlink"}, "above "+why, w.filter("literal", a, byZsbx("above a denied path")))
	}
}

// writable reports whether the policy lets the command rename the directory p.
func (w *sbpl) writable(p string) bool {
	if p == "/" {
		return false
	}
	for _, a := range append(ancestors(p), p) {
		if w.roots[a] {
			return true
		}
	}
	return false
}

// writableRoots returns the directories in which the command may write.
func writableRoots(r *resolve.Resolved) map[string]bool {
	roots := map[string]bool{}
	for _, p := range r.Paths {
		if c, err := Path(p.Path); err == nil && p.Access&policy.Write != 0 && p.Mode.IsDir() {
			roots[c] = true
		}
	}
	return roots
}
