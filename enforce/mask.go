package enforce

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/policy"
)

// MountPlan is the private mount namespace that a command gets for what
// Landlock does not hold: what is denied inside a writable tree is covered,
// what is protected there is read-only, and so is all that the policy does not
// let the command write, which refuses chmod(2), chown(2), utimensat(2),
// setxattr(2) and file flags.
//
// It is data. The system calls are made by the keeper, or by the command's own
// process where there is none, before any Landlock domain: a process in one
// can't mount.
type MountPlan struct {
	// UserNS says that the namespace is had through a user namespace, as an
	// ordinary user must. Files of other owners then belong to nobody(65534)
	// as the command sees them.
	UserNS bool

	Why []string // what needs the namespace, for people

	// IPC says that the command also gets System V shared memory,
	// semaphores and queues, and POSIX queues, of its own
	// (ipc_namespaces(7)).
	IPC bool

	// Writable are the trees and files that stay writable, none within
	// another, at most 500. With a nil list nothing is made read-only.
	Writable []string

	// Copies are what programs refuse to read when it belongs to nobody.
	Copies []Copy

	// Mounts are made in this order: a directory before what lies in it.
	Mounts []Mount

	// Private are made after them.
	Private []PrivateDir
}

// Mount covers one path.
type Mount struct {
	Path   string
	Kind   MountKind
	Dir    bool
	ID     policy.FileID // what it has to be when it is mounted; zero for whatever it is
	Origin policy.Origin // who asked; zero for the protected set
}

// MountKind says what a Mount does.
type MountKind string

// The kinds of mounts.
const (
	// Mask hides a file or directory: it can't be opened, by root neither.
	// A file becomes a device that no driver may be reached through, a
	// directory an empty one.
	Mask MountKind = "mask"
	// Protect makes a file or a tree read-only.
	Protect MountKind = "protect"
	// Pin changes nothing but that the directory can't be renamed or
	// removed: that would put what is mounted below out of the way.
	Pin MountKind = "pin"
)

// The bounds of a namespace. More than that is a Gap.
const maxMounts = 4000

// maxWritable bounds MountPlan.Writable: each path takes a descriptor while
// the namespace is made, of the 1024 that a process may have by default.
const maxWritable = 500

// mounts plans the mount namespace. It is filled while the Landlock rules are
// made, since these decide which denials are left.
type mounts struct {
	p      *Plan
	host   *policy.Host
	opts   Options
	masks  []Mount
	denied []policy.DenyPath // those that stand behind masks
	later  []policy.DenyPath // those that name what may still be made
	prot   protection
}

// possible says whether a namespace can be had, and if not why.
func (m *mounts) possible() (bool, string) {
	switch {
	case !m.p.Caps.MountNS:
		why := m.p.Caps.MountReason
		if why == "" {
			why = "neither CAP_SYS_ADMIN nor a user namespace can be had"
		}
		return false, why
	case m.opts.InPlace && !m.p.Caps.Privileged:
		return false, "a program that replaces itself can't enter a user namespace"
	case m.host == nil || m.host.Lstat == nil || m.host.ReadDir == nil:
		return false, "nothing to look at files with"
	}
	return true, ""
}

// mask covers what the denials name inside a writable tree. It says why it
// can't, or "".
func (m *mounts) mask(d *denials, t tree, inside []barred) string {
	if ok, why := m.possible(); !ok {
		return "no mount namespace: " + why
	}
	hits, err := d.hits(t.path, inside)
	if err != nil {
		return err.Error()
	}
	for _, h := range hits {
		if err := m.cover(h, by(inside, h), &d.names); err != nil {
			return err.Error()
		}
	}
	for _, b := range inside {
		if b.Glob || !slices.ContainsFunc(hits, func(h hit) bool { return h.path == b.Pattern }) {
			m.later = append(m.later, b.DenyPath)
		}
		m.denied = append(m.denied, b.DenyPath)
	}
	return ""
}

// cover adds the mask for one hit. A link can't be covered: what it leads to
// is, if the link was matched by a glob; in a plain path links were followed
// when it was resolved.
func (m *mounts) cover(h hit, d policy.DenyPath, names *manyNames) error {
	real, st, err := m.host.RealPath(h.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a link to nothing
	}
	if err != nil {
		return err
	}
	if !m.reachable(real) {
		return nil
	}
	names.note(real, st, d)
	if len(m.masks) >= maxMounts {
		return fmt.Errorf("it names more than %d files", maxMounts)
	}
	m.masks = append(m.masks, Mount{Path: real, Kind: Mask, Dir: st.Mode.IsDir(), ID: st.ID, Origin: d.Deny.Origin})
	return nil
}

// hidden are the masks for Options.Hide.
func (m *mounts) hidden() []Mount {
	var out []Mount
	for _, dir := range hideable(m.p.Policy, m.host, m.opts) {
		if st, err := m.host.Lstat(dir); err == nil && st.Mode.IsDir() && m.reachable(dir) {
			out = append(out, Mount{Path: dir, Kind: Mask, Dir: true, ID: st.ID})
		}
	}
	return out
}

// reachable says whether the policy lets the command at a path at all.
func (m *mounts) reachable(p string) bool {
	return slices.ContainsFunc(m.p.Policy.Paths, func(t policy.Path) bool { return within(p, t.Path) })
}

// finish decides whether there is a namespace, and what it holds.
func (m *mounts) finish() {
	p := m.p
	prot := m.prot
	p.watch, p.near = prot.watch, prot.near
	for _, d := range m.later {
		p.watch = append(p.watch, watchDenied(d)...)
	}
	writable := writableTrees(p.Policy.Paths)
	why := mountReasons(m.opts, len(m.masks), len(prot.mounts)+len(prot.ownMounts), writable != nil, m.opensTerminals())
	ok, cannot := m.possible()
	if len(why) == 0 || !ok {
		m.gaps(prot, writable != nil, cannot)
		return
	}
	mp := &MountPlan{UserNS: !p.Caps.Privileged, Why: why, Writable: writable}
	mp.Mounts = joinMounts(slices.Concat(m.masks, m.hidden(), prot.ownMounts, prot.mounts))
	mp.Mounts = append(mp.Mounts, aliases(m.host, prot.table, mp.Mounts)...)
	if len(mp.Mounts) > maxMounts {
		m.ownOpen(fmt.Sprintf("it would take more than %d mounts", maxMounts))
		m.gaps(prot, writable != nil, fmt.Sprintf("it would take more than %d mounts", maxMounts))
		return
	}
	if mp.UserNS {
		mp.Copies = sshCopies(p.Policy, m.host)
	}
	m.addPrivate(mp)
	p.Mounts = mp
	if n := len(mp.Writable); n > maxWritable {
		mp.Writable = nil
		p.addGap(metadataGap(fmt.Sprintf("%d paths are writable, more than %d", n, maxWritable), ""))
	}
	m.missingGaps()
}

// mountReasons says what the namespace is for. There is always something, but
// for a caller who accepts the gaps by name: in a user namespace, which an
// ordinary user needs, the files of others seem to belong to nobody, and some
// programs insist on their owner. Outside writable trees there is nothing when
// / is one.
func mountReasons(opts Options, masks, protected int, outside, terminals bool) []string {
	var why []string
	for _, r := range []struct {
		holds bool
		what  string
	}{
		{masks > 0, "denials inside writable trees"},
		{protected > 0, "protected files in writable trees"},
		{outside && !opts.LeaveMetadata, "metadata of everything else"},
		{!opts.ShareIPC, "shared memory of other programs"},
		{terminals && !opts.ShareTerminals, "other terminals"},
	} {
		if r.holds {
			why = append(why, r.what)
		}
	}
	return why
}

// gaps says what is not held without a namespace.
func (m *mounts) gaps(prot protection, outside bool, cannot string) {
	p, hint := m.p, ""
	if cannot == "" {
		cannot = "accepted, and nothing else needs a mount namespace"
	} else {
		cannot = "no mount namespace: " + cannot
		if !p.Caps.MountNS {
			hint = p.Caps.MountHint
		}
	}
	if len(prot.mounts) > 0 {
		p.addGap(Gap{Name: GapProtect, Kind: Hardening,
			Promise: "no change of " + prot.summary(), Why: cannot, Hint: hint})
	}
	if len(m.masks) > 0 { // too many mounts
		for _, d := range m.denied {
			p.denyGap(d, cannot)
		}
	}
	if outside {
		p.addGap(metadataGap(cannot, hint))
	}
	m.sharedGaps(cannot, hint)
	m.missingGaps()
}

func metadataGap(why, hint string) Gap {
	return Gap{Name: GapMetadata, Kind: Hardening,
		Promise: "no change of mode, owner, times, attributes and flags of files outside the writable trees", Why: why, Hint: hint}
}

// missingGaps tells of denials that cover what is there now, and not what
// will be made later.
func (m *mounts) missingGaps() {
	for _, d := range m.later {
		m.p.addGap(Gap{Name: GapDenyMissing, Kind: Hardening,
			Promise: "nothing new is made that is named " + d.Pattern,
			Why:     "what does not exist yet in a writable tree can't be covered; it is reported when the command ends",
			Origin:  d.Deny.Origin})
	}
}

// layer describes the namespace for people.
func (mp *MountPlan) layer() Layer {
	n := map[MountKind]int{}
	for _, m := range mp.Mounts {
		n[m.Kind]++
	}
	how := "with CAP_SYS_ADMIN"
	if mp.UserNS {
		how = "through a user namespace"
	}
	detail := fmt.Sprintf("%s, for %s: %d masked, %d protected", how, strings.Join(mp.Why, ", "), n[Mask], n[Protect])
	if mp.IPC {
		detail += "; System V IPC of its own"
	}
	for _, d := range mp.Private {
		detail += "; " + d.Path + " of its own"
	}
	if mp.Writable != nil {
		detail += fmt.Sprintf("; read-only but for %d paths", len(mp.Writable))
	}
	return Layer{"mounts", detail}
}
