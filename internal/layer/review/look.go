package review

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"github.com/zsbx/zsbx/internal/enforce/protect"
	"github.com/zsbx/zsbx/internal/glob"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/layer"
)

// Look is a reason why somebody should look at a change before it is made real.
type Look struct {
	Kind Kind   `json:"kind"`
	Why  string `json:"why"` // for people
}

// Kind is the kind of a reason. Its texts are those of --json.
type Kind string

const (
	Conflict  Kind = "conflict"  // the tree has changed meanwhile
	Refused   Kind = "refused"   // it is never applied, such as a device
	Acts      Kind = "acts"      // programs outside run or trust it
	Denied    Kind = "denied"    // it has a name that was denied to the command
	Protected Kind = "protected" // as Acts, but settings say so and not its name
	Replaces  Kind = "replaces"  // a program that replaces another
	Leaves    Kind = "leaves"    // a link that leads out of the tree
	Shared    Kind = "shared"    // every user may write it, or others what is made in it
	Foreign   Kind = "foreign"   // it comes to belong to somebody else
)

// judge returns all reasons to look at a change.
func (r *Review) judge(c *layer.Change) []Look {
	var all []Look
	add := func(is bool, kind Kind, why string) {
		if is {
			all = append(all, Look{kind, why})
		}
	}
	add(c.Conflict != "", Conflict, "conflict: "+c.Conflict)
	add(c.Refused != "", Refused, "never applied: "+c.Refused)
	why, is := r.acts(c)
	add(is, Acts, why)
	name := r.Path(c)
	add(!is && r.isProtected(name), Protected, trusted)
	denied := slices.ContainsFunc(r.denied, func(g glob.Glob) bool { return g.Match(name) })
	add(denied, Denied, "its name was denied to the command")
	add(r.replaces(c) || r.replacesByLink(c), Replaces, "a program that was there before")
	if c.Op != layer.Remove {
		to, out := r.leaves(c)
		add(out, Leaves, "leads out of the tree, to "+to)
		add(shared(c.Type), Shared, "every user may write it")
		add(c.Shares, Shared, "others may write what is made in it")
		add(c.Foreign != "", Foreign, c.Foreign)
	}
	return all
}

// shared reports whether every user may write something. In a sticky directory none can replace what others made.
func shared(mode fs.FileMode) bool {
	sticky := mode.IsDir() && mode&fs.ModeSticky != 0
	return mode&0o002 != 0 && mode&fs.ModeSymlink == 0 && !sticky
}

// trusted is the reason for what settings name.
const trusted = "programs outside run or trust it"

// isProtected reports whether settings name a path, or a directory that it is in.
func (r *Review) isProtected(p string) bool {
	for !r.protected[p] {
		if p == "/" || p == "." {
			return false
		}
		p = path.Dir(p)
	}
	return true
}

// acts reports whether programs outside run or trust what a change makes, changes or removes. A directory
// does nothing by itself.
func (r *Review) acts(c *layer.Change) (why string, is bool) {
	if mainMode(c).IsDir() && (c.Was == nil || c.Was.Mode.IsDir()) {
		return "", false
	}
	at := key{c.Tree, c.Path}
	names := r.names(at)
	isLink := c.Type&fs.ModeSymlink != 0 || c.Was != nil && c.Was.Mode&fs.ModeSymlink != 0
	why, is = known(names, isLink)
	if !is {
		why, is = r.throughLink(at, isLink)
	}
	if !is && !r.isProtected(r.full(at)) {
		why, is = r.passed[at]
	}
	if !is {
		why, is = protect.InBare(names, func(dir string) bool { return r.has(path.Join("/", dir, "HEAD")) })
	}
	if !is && r.unknown {
		return "not all links and git settings of the trees were read: one may lead here", true
	}
	return why, is
}

// known reports whether programs outside run or trust what has a name, or come to it through a link of that name.
func known(name string, isLink bool) (why string, is bool) {
	why, is = protect.Acts(name)
	if !is && isLink {
		why, is = protect.Leads(name)
	}
	return why, is
}

// replaces reports whether a change puts a program where another one was. What a link leads to may be one, too.
func (r *Review) replaces(c *layer.Change) bool {
	if c.Was == nil || c.Op == layer.Remove {
		return false
	}
	is := program(c.Type)
	was := program(c.Was.Mode)
	link := c.Type&fs.ModeSymlink != 0
	wasLink := c.Was.Mode&fs.ModeSymlink != 0
	name := r.Path(c)
	return is && (was || wasLink) || link && (was || wasLink && (ofPrograms(name) || ofPrograms(path.Dir(name))))
}

// replacesByLink reports whether there is something by the name of a program before and afterwards, since a directory
// above it takes the place of a link, or a link that of a directory.
func (r *Review) replacesByLink(c *layer.Change) bool {
	mode := mainMode(c)
	link := mode&fs.ModeSymlink != 0
	if c.Op == layer.Modify || !program(mode) && !(link && ofPrograms(path.Dir(c.Path))) {
		return false
	}
	for dir := path.Dir(c.Path); ; dir = path.Dir(dir) {
		i, changed := r.at[key{c.Tree, dir}]
		if !changed {
			return false
		}
		above := &r.Changes[i]
		switch {
		case above.Was != nil && above.Op == layer.Modify && c.Op == layer.Remove:
			return above.Type&fs.ModeSymlink != 0 && r.after.Way(r.Path(c)).Presence != host.Absent
		case above.Was != nil && above.Op == layer.Modify:
			return above.Was.Mode&fs.ModeSymlink != 0 && r.before.Way(r.Path(c)).Presence != host.Absent
		case dir == ".":
			return false
		}
	}
}

// ofPrograms reports whether a directory has a name for those that have programs.
func ofPrograms(dir string) bool { return slices.Contains([]string{"bin", ".bin"}, path.Base(dir)) }

// program reports whether something is a regular file that can be executed.
func program(mode fs.FileMode) bool { return mode.IsRegular() && mode&0o111 != 0 }

// leaves reports whether a symbolic link leads out of its tree, and what is written in it. Other links on
// the way are followed, as they would be once all changes are made real. A loop leads nowhere.
func (r *Review) leaves(c *layer.Change) (to string, out bool) {
	if c.Type&fs.ModeSymlink == 0 {
		return "", false
	}
	to, err := r.files.Link(c.Tree, c.Path, false)
	if err != nil {
		return "an unknown place", true
	}
	way := r.after.Way(r.Path(c))
	if way.Presence == host.Unknown && !errors.Is(way.Err, syscall.ELOOP) {
		return to, true
	}
	return to, slices.ContainsFunc(append(way.Links, way.Path), func(p string) bool {
		at, in := r.place(p)
		return !in || at.tree != c.Tree
	})
}

// has reports whether there may be something at an absolute path once all changes are made real.
func (r *Review) has(p string) bool { return r.after.Look(p).Presence != host.Absent }
