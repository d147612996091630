package mounts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/policy"
)

// Plan is the private mount namespace of a command. It holds what Landlock does not:
// denials in writable trees, and chmod(2), chown(2), utimensat(2), setxattr(2) and file
// flags outside of them. Its system calls are made by the keeper, or by the command's own
// process where there is none, before any Landlock domain: a process in one can't mount.
type Plan struct {
	// UserNS says that the namespace is had through a user namespace, as an
	// ordinary user must. Files of other owners then belong to nobody(65534)
	// as the command sees them.
	UserNS bool

	Why []string // what needs the namespace, for people

	// IPC says that the command also gets System V shared memory,
	// semaphores and queues, and POSIX queues, of its own
	// (ipc_namespaces(7)).
	IPC bool

	// Pids says that the command gets a PID namespace of its own, with its own
	// /proc (pid_namespaces(7)): see fork.Command.Namespaces.
	Pids bool

	// Writable are the trees and files that stay writable, none within
	// another, at most 500. With a nil list nothing is made read-only.
	Writable []string

	// SSH are the files that take the place of those in SSHDir.
	SSH []copied

	// Mounts are made in this order: a directory before what lies in it.
	Mounts []Mount

	// Private are made after them.
	Private []PrivateDir
}

// Mount covers one path.
type Mount struct {
	Path   string
	Kind   Kind
	Dir    bool
	ID     policy.FileID // what it has to be when it is mounted; zero for whatever it is
	Origin policy.Origin // who asked; zero for the protected set
}

// Kind says what a Mount does.
type Kind string

const (
	// Mask hides a file or directory: it can't be opened, by root neither.
	// A file becomes a device that no driver may be reached through, a
	// directory an empty one.
	Mask Kind = "mask"
	// Protect makes a file or a tree read-only.
	Protect Kind = "protect"
	// Pin changes nothing but that the directory can't be renamed or
	// removed: that would put what is mounted below out of the way.
	Pin Kind = "pin"
)

// maxWritable bounds Plan.Writable, and what is mounted in a private home: each path takes a descriptor while
// the namespace is made, of the 1024 that a process may have by default.
const maxWritable = 500

// The tags of the steps that make a mount namespace. TagSetup and TagUnshare fail
// where there can be none; TagCover may, too, where what is covered was removed or
// replaced meanwhile (ENOENT, EINVAL). Those of TagOpen and TagCheck have a path as
// their name, and TagCheck fails with ESTALE where another file is there.
const (
	TagUnshare fork.Tag = "namespaces"
	TagSetup   fork.Tag = "mount namespace"
	TagCover   fork.Tag = "mount namespace, covering"
	TagOpen    fork.Tag = "mount namespace, opening"
	TagCheck   fork.Tag = "checking"
	TagIPC     fork.Tag = "IPC namespace"
	TagProc    fork.Tag = "PID namespace, its /proc"
)

// Request is what a namespace is wanted for.
type Request struct {
	Policy  *policy.Resolved
	Host    *policy.Host
	UserNS  bool   // a user namespace is needed for it
	None    string // why there is none here, or ""
	NoIPC   string // why there is no IPC namespace beside it, or ""
	NoPids  string // likewise a PID namespace
	NoHome  string // and a private home
	Handled uint64 // the rights that Landlock handles

	ShareIPC       bool // the caller's System V IPC and /dev/shm stay
	ShareTerminals bool // its /dev/pts stays
	LeaveMetadata  bool // no namespace is made for the metadata of files alone

	Trees  []deny.Tree // what the policy allows less what it denies
	Mounts []Mount     // for denials, zsbx's own files and the protected set
	Hide   []string    // directories that the command has no reason to look into
	Table  Table       // of this process; nil when it was not read
}

// Result is what became of a Request.
type Result struct {
	Plan *Plan  // nil: none
	None string // why there is none

	Metadata string // why the metadata of files outside stay open beside the plan, or ""
	IPC      string // likewise System V IPC and /dev/shm
	Home     string // why the policy's private home is not, or ""
	Pids     string // why the policy's private process ids are not, or ""
	Tmp      string // what /tmp and /var/tmp are to the command; "" where it has no temporary directory of its own
}

// New decides whether there is a namespace, and what it holds.
func New(q Request) Result {
	writable := WritableTrees(q.Policy.Paths)
	why := q.Reasons(writable != nil)
	switch {
	case q.None != "":
		why := NoNamespace(q.None)
		return Result{None: why, Home: why, Pids: why, Tmp: q.tmp(nil)}
	case len(why) == 0:
		return Result{None: "accepted, and nothing else needs a mount namespace", Home: q.NoHome, Pids: q.NoPids, Tmp: q.tmp(nil)}
	}
	mp := &Plan{UserNS: q.UserNS, Why: why, Writable: writable}
	mp.Mounts = joinMounts(append(q.Mounts, q.hidden()...))
	// What is found under two names of a second mount is there already: covered
	// twice, the check would find the cover in place of the file.
	mp.Mounts = joinMounts(append(mp.Mounts, aliases(q.Host, q.Table, mp.Mounts)...))
	if mp.UserNS {
		mp.SSH = SSHCopies(q.Policy, q.Host)
	}
	out := Result{Plan: mp, IPC: q.private(mp)}
	out.Home, out.Tmp, out.Pids = q.home(mp), q.tmp(mp), q.pids(mp)
	if n := len(mp.Writable); n > maxWritable {
		mp.Writable = nil
		out.Metadata = fmt.Sprintf("%d paths are writable, more than %d", n, maxWritable)
	}
	return out
}

func NoNamespace(why string) string { return "no mount namespace: " + why }

// hidden are the masks for what Hide has.
func (q *Request) hidden() (out []Mount) {
	for _, dir := range q.Hide {
		reachable := slices.ContainsFunc(q.Policy.Paths, func(t policy.Path) bool { return policy.Within(dir, t.Path) })
		if st, err := q.Host.Lstat(dir); err == nil && st.Mode.IsDir() && reachable {
			out = append(out, Mount{Path: dir, Kind: Mask, Dir: true, ID: st.ID})
		}
	}
	return out
}

// Reasons says what the namespace is for. There is always something, but
// for a caller who accepts the gaps by name: in a user namespace, which an
// ordinary user needs, the files of others seem to belong to nobody, and some
// programs insist on their owner. Outside writable trees there is nothing when
// / is one.
func (q *Request) Reasons(outside bool) []string {
	masks := func(m Mount) bool { return m.Kind == Mask }
	var why []string
	for _, r := range []struct {
		holds bool
		what  string
	}{
		{slices.ContainsFunc(q.Mounts, masks), "denials inside writable trees"},
		{slices.ContainsFunc(q.Mounts, func(m Mount) bool { return !masks(m) }), "protected files in writable trees"},
		{outside && !q.LeaveMetadata, "metadata of everything else"},
		{!q.ShareIPC, "shared memory of other programs"},
		{q.Policy.Private.Home.Is() && q.NoHome == "", "a home directory of its own"},
		{q.Policy.Private.Pids.Is() && q.NoPids == "", "other processes"},
		{!q.ShareTerminals && OpensTerminals(q.Policy), "other terminals"},
	} {
		if r.holds {
			why = append(why, r.what)
		}
	}
	return why
}

// String describes the namespace for people.
func (mp *Plan) String() string {
	n := map[Kind]int{}
	for _, m := range mp.Mounts {
		n[m.Kind]++
	}
	how := "with CAP_SYS_ADMIN"
	if mp.UserNS {
		how = "through a user namespace"
	}
	detail := fmt.Sprintf("%s, for %s: %d masked, %d protected", how, strings.Join(mp.Why, ", "), n[Mask], n[Protect])
	if mp.IPC {
		detail += "; its own System V IPC"
	}
	for _, d := range mp.Private {
		detail += "; " + d.Path + " of its own"
	}
	if mp.Writable != nil {
		detail += fmt.Sprintf("; read-only but for %d paths", len(mp.Writable))
	}
	return detail
}

// WritableTrees are the outermost paths that the policy lets the command
// write, without devices, sockets and pipes: a read-only mount does not keep
// these from being written. The result is nil when / is one of them.
func WritableTrees(paths []policy.Path) []string {
	out := []string{}
	for _, t := range paths {
		if t.Access&policy.Write == 0 || !t.Mode.IsDir() && !t.Mode.IsRegular() {
			continue
		}
		if t.Path == "/" {
			return nil
		}
		out = append(out, t.Path)
	}
	slices.SortFunc(out, landlock.ComparePaths)
	outer := ""
	return slices.DeleteFunc(out, func(p string) bool {
		if outer == "" || !policy.Within(p, outer) {
			outer = p
		}
		return p != outer
	})
}

// joinMounts sorts mounts so that a directory comes before what lies in it,
// and leaves out what lies in something masked or is mounted twice. A mask
// outranks all else.
func joinMounts(ms []Mount) []Mount {
	rank := map[Kind]int{Mask: 0, Protect: 1, Pin: 2}
	slices.SortStableFunc(ms, func(a, b Mount) int {
		if c := landlock.ComparePaths(a.Path, b.Path); c != 0 {
			return c
		}
		return rank[a.Kind] - rank[b.Kind]
	})
	var out []Mount
	hidden := "" // the last directory of which nothing below needs a mount
	for _, m := range ms {
		switch {
		case len(out) > 0 && out[len(out)-1].Path == m.Path:
			continue
		case hidden != "" && policy.Within(m.Path, hidden):
			continue
		}
		out = append(out, m)
		if m.Kind == Mask && m.Dir {
			hidden = m.Path
		}
	}
	return out
}
