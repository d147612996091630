package deny

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/zsbx/zsbx/internal/files"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// The limits for denials.
const (
	maxSiblings = 10_000  // rules that replace the one of a read-only tree
	maxVisited  = 200_000 // directory entries read
	maxMasks    = 50_000  // masked files, a mount each; a namespace may have 100,000 (proc_sys_fs(5), mount-max)
)

// Tree is a rule of the policy on its way into the ruleset.
type Tree struct {
	Path   string
	Access policy.Access
	Mode   fs.FileMode
	ID     host.FileID
	Origin policy.Origin

	// Data says that no symbolic links can be made (policy.Rule).
	Data bool

	// ListOnly marks a directory that was split. It may be listed, but the rule allows nothing
	// below it.
	ListOnly bool

	// Part marks an entry of a tree that was split.
	Part bool
}

// Cut is what a policy allows, minus what it denies. Landlock has no denials: a rule on a
// directory holds for all below it. A denial of a rule's own path removes the rule. For a
// denial inside a read-only tree, the tree's other entries are allowed one by one. That does
// not work in a writable tree, since new files there would not be allowed. There the denial
// needs a mount that masks the file.
type Cut struct {
	Trees      []Tree             // what is left
	Masks      []Tree             // what must be masked in them
	Later      []resolve.DenyPath // denials enforced by masks; they may also match files that are made later
	Unenforced []unenforced

	Searched Searched // what was found

	// Denied and Open are how many files were found that masks should hide, and how many of
	// these stay open.
	Denied, Open int
}

type unenforced struct {
	Deny resolve.DenyPath
	Why  string

	// In is a directory that has all that is denied, or "". If the directory is denied as a
	// whole, the denial is enforced.
	In string
}

// Request is what a policy allows and denies on a machine.
type Request struct {
	Trees []Tree
	Deny  []resolve.DenyPath
	Host  *host.Host

	// Searched has what was found so far. More is added.
	Searched Searched

	NoMasks string // why nothing can be masked, or ""

	// Twice are the mount points whose files have other names, too. Same returns a path's other
	// names; the error says that there may be more. Landlock's rules are bound to inodes, so a
	// rule for one name opens both. Unread says why they are not known at all.
	Twice  []string
	Same   func(p string) ([]string, error)
	Unread error

	// Private is a directory below which trees are masked, not split, or "". The command has a
	// private directory there, and Landlock's rights hold for all in it.
	Private string
}

// denials subtracts denials from trees.
type denials struct {
	Request
	deny    []barred
	linked  []barred // targets of links that match a glob
	visited int
	added   int
	in      string               // unenforced.In
	unseen  error                // other names in a tree may be denied, or lead to what is
	files   map[host.FileID]bool // denied files that are no directories
	hidden  []hidden             // what is denied and can't be looked at
	out     Cut
}

// hidden is a denied path that can't be looked at.
type hidden struct {
	by   barred
	path string
	why  error
}

// barred is a DenyPath with its parsed pattern.
type barred struct {
	resolve.DenyPath
	glob glob.Glob
}

var errTooLarge = errors.New("the tree is too large to be split")

// Subtract subtracts the denials from the trees.
func Subtract(q Request) Cut {
	d := newDenials(q)
	unread := d.out.Unenforced
	for again := true; again; {
		d.out = Cut{Trees: make([]Tree, 0, len(q.Trees)), Unenforced: unread}
		d.visited = 0
		d.added = 0
		for _, t := range q.Trees {
			d.out.Trees = append(d.out.Trees, d.apply(t)...)
		}
		again = len(d.linked) > 0
		d.deny = append(d.deny, d.linked...)
		d.linked = nil
	}
	d.withoutLinks()
	d.out.Searched = d.Searched
	return d.out
}

// newDenials parses the patterns. An invalid one denies nothing and is not enforced.
func newDenials(q Request) *denials {
	d := &denials{Request: q, files: make(map[host.FileID]bool)}
	if d.Searched == nil {
		d.Searched = make(Searched)
	}
	for _, p := range q.Deny {
		n := barred{DenyPath: p}
		if p.Glob {
			var err error
			n.glob, err = glob.Parse(p.Pattern)
			if err != nil {
				d.fail(err.Error(), n)
				continue
			}
		}
		d.deny = append(d.deny, n)
	}
	return d
}

func (d *denials) fail(why string, all ...barred) {
	for _, b := range all {
		d.out.Unenforced = append(d.out.Unenforced, unenforced{b.DenyPath, why, d.in})
	}
}

// apply subtracts the denials from one tree. If that is impossible, the tree stays whole and
// the denials are not enforced.
func (d *denials) apply(t Tree) []Tree {
	if len(d.deny) == 0 {
		return []Tree{t}
	}
	d.unseen = nil
	defer d.maybe()
	names := d.names(t.Path)
	aliases := d.aliases(t.Path)
	if slices.ContainsFunc(d.deny, func(b barred) bool { return slices.ContainsFunc(names, b.covers) }) {
		return nil
	}
	secrets, asked := d.inside(t, aliases)
	if why := d.mask(t, aliases, secrets); why != "" {
		d.fail(why, secrets...)
	}
	const none = "Landlock has no denials, and "
	if t.Access&policy.Write != 0 || d.Private != "" && host.Within(t.Path, d.Private) {
		if why := d.mask(t, aliases, asked); why != "" {
			const whole = "%s is writable or in a private home, so its other entries can't be allowed one by one; %s"
			d.fail(none+fmt.Sprintf(whole, t.Path, why), asked...)
		}
		return []Tree{t}
	}
	hits, err := d.hits(t.Path, aliases, asked)
	if err == nil && len(hits) > 0 {
		for _, h := range hits {
			d.note(h.Path, h.by)
		}
		var entries []Tree
		entries, err = d.split(t, hits)
		if err == nil {
			return entries
		}
	}
	if errors.Is(err, errTooLarge) && len(hits) > 0 && d.mask(t, aliases, asked) == "" {
		return []Tree{t}
	}
	if err != nil {
		d.fail(fmt.Sprintf("%s%s can't be allowed entry by entry: %v", none, t.Path, err), asked...)
	}
	return []Tree{t}
}

// inside returns the denials that may match something in a tree. The user did not ask to deny the
// secrets, so they are masked or stay open: a home directory that is split could not be listed.
func (d *denials) inside(t Tree, aliases []alias) (secrets, asked []barred) {
	if !t.Mode.IsDir() {
		return nil, nil
	}
	for _, b := range d.deny {
		matches := func(v alias) bool { return b.covers(v.name) || b.reaches(v.name) }
		if !slices.ContainsFunc(aliases, matches) {
			continue
		}
		if b.Secret {
			secrets = append(secrets, b)
		} else {
			asked = append(asked, b)
		}
	}
	return secrets, asked
}

// maybe says that denials may not be enforced, since not all names in a tree are known.
func (d *denials) maybe() {
	if d.unseen != nil {
		d.in = ""
		d.fail(d.unseen.Error(), d.deny...)
	}
}

// mask adds masks for what the denials match in a writable tree. It returns why that is
// impossible, or "".
func (d *denials) mask(t Tree, aliases []alias, inside []barred) string {
	if len(inside) == 0 {
		return ""
	}
	d.in = ""
	hits, err := d.hits(t.Path, aliases, inside)
	switch {
	case d.NoMasks != "":
		d.out.Denied += len(hits)
		d.out.Open += len(hits)
		return "no mount namespace: " + d.NoMasks
	case err != nil:
		return err.Error()
	}
	open := 0
	there := make(map[string]bool)
	for _, h := range hits {
		at := d.Host.Look(h.Path)
		switch {
		case at.Presence == host.Absent:
			continue
		case at.Presence == host.Unknown:
			return at.Err.Error()
		case len(d.out.Masks) >= maxMasks:
			open++
			continue
		}
		d.out.Masks = append(d.out.Masks, Tree{
			Path:   h.Path,
			Mode:   at.Stat.Mode.Type(),
			ID:     at.Stat.ID,
			Origin: h.by.Deny.Origin,
		})
		there[h.by.Pattern] = there[h.by.Pattern] || !h.closed
	}
	d.out.Denied += len(hits)
	d.out.Open += open
	if open > 0 {
		d.in = within(hits, t.Path)
		const why = "%d of %d denied files would stay open, since at most %d can be hidden"
		return fmt.Sprintf(why, open, len(hits), maxMasks)
	}
	for _, b := range inside {
		if t.Access&policy.Write != 0 && (b.Glob || !there[b.Pattern]) {
			d.out.Later = append(d.out.Later, b.DenyPath)
		}
	}
	return ""
}

// within returns the directory that has all hits, or "" if that is the tree or above.
func within(hits []hit, tree string) string {
	in := path.Dir(hits[0].Path)
	for _, h := range hits {
		for !host.Within(h.Path, in) {
			in = path.Dir(in)
		}
	}
	if in == tree || !host.Within(in, tree) {
		return ""
	}
	return in
}

// note records the inode of a denied path, or that the path can't be looked at. It leaves out what
// the command can't reach either: its owners gave it other names for the command to reach.
func (d *denials) note(p string, by *barred) {
	at := d.Host.Look(p)
	switch {
	case at.Presence == host.Unknown && d.Host.MayReach(p):
		d.hidden = append(d.hidden, hidden{*by, p, at.Err})
	case at.Presence == host.Present && !at.IsDir():
		d.files[at.Stat.ID] = true
	}
}

// withoutLinks removes rules for other names (hard links) of denied files, since a rule on a
// file is a rule on its inode and would open the denied name. Another name in a directory that
// is allowed whole stays open. Landlock can't prevent that, and the kernel does not report
// where the name is.
func (d *denials) withoutLinks() {
	for _, b := range d.deny {
		if !b.Glob && !b.Secret && d.Host != nil {
			d.note(b.Pattern, &b)
		}
	}
	d.out.Trees = slices.DeleteFunc(d.out.Trees, func(t Tree) bool { return !t.Mode.IsDir() && d.files[t.ID] })
	for _, h := range d.hidden {
		d.in = ""
		if i := slices.IndexFunc(d.out.Trees, d.manyNames); i >= 0 {
			const why = "%s may be another name (hard link) of %s, which can't be looked at: %v"
			d.fail(fmt.Sprintf(why, d.out.Trees[i].Path, h.path, files.Plain(h.why)), h.by)
		}
	}
}

// manyNames reports whether a rule is for a file that may have other names.
func (d *denials) manyNames(t Tree) bool {
	return t.Mode.IsRegular() && d.Host.Look(t.Path).Stat.Nlink != 1
}

// covers reports whether a denial matches the path or a directory above it.
func (d *barred) covers(p string) bool {
	if d.Glob {
		return d.glob.Match(p)
	}
	return host.Within(p, d.Pattern)
}

// reaches reports whether a denial that does not cover dir may match something below it.
func (d *barred) reaches(dir string) bool {
	if d.Glob {
		return d.glob.MayMatchBelow(dir)
	}
	return host.Within(d.Pattern, dir)
}
