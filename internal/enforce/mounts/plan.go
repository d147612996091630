package mounts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/deny"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/fork"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Plan is the private mount namespace of a command. It enforces what Landlock can't: denials in
// writable trees, and no chmod(2), chown(2), utimensat(2), setxattr(2) or file flags outside
// them. The keeper makes the system calls, or the command's process if there is no keeper. They
// come before Landlock, since a process in a Landlock domain can't mount.
type Plan struct {
	// UserNS says that the namespace is made in a user namespace, as an ordinary user must do.
	// The command then sees files of other owners as those of nobody (65534).
	UserNS bool
	By     string // what allows that, for people; may be ""

	Why []string // what the namespace is for, for people

	// IPC says that the command also gets its own System V shared memory, semaphores and
	// queues, and POSIX queues (ipc_namespaces(7)).
	IPC bool

	// Pids says that the command gets its own PID namespace with its own /proc
	// (pid_namespaces(7)). See fork.Command.Namespaces.
	Pids bool

	// Writable are the trees and files that stay writable, at most maxWritable and none inside
	// another. If it is nil, nothing is made read-only.
	Writable []string

	// SSH are the files that replace those in SSHDir.
	SSH []copied

	// Overlays are those of Writable that the command writes to layers of.
	Overlays []Overlay

	// Temp is the session's temporary directory, if it is in one of Overlays. It has no layer.
	Temp Back

	// Mounts are made in this order: a directory before what is in it.
	Mounts []Mount

	// Private are made after them.
	Private []PrivateDir
}

// Mount covers one path.
type Mount struct {
	Path   string
	Kind   Kind
	Dir    bool
	ID     host.FileID   // the inode that it must be when mounted; zero for any
	Origin policy.Origin // the rule that asked; zero for the protected set
	Users  bool          // it protects a file of the user's that programs outside act on
}

// Kind says what a Mount does.
type Kind string

const (
	// Mask hides a file or directory, so that not even root can open it. A file becomes a
	// device that can't be opened, a directory becomes empty.
	Mask Kind = "mask"
	// Protect makes a file or a tree read-only.
	Protect Kind = "protect"
	// Pin only keeps a directory from being renamed or removed, which would move the mounts
	// below it away.
	Pin Kind = "pin"
)

// maxWritable limits Plan.Writable and the mounts in a private home. Each path takes a
// descriptor while the namespace is made, and a process may have 1024 by default.
const maxWritable = 500

// The tags of the steps that make a mount namespace. TagUnshare and TagSetup fail where there
// can be no namespace. TagCover can also fail because the path was removed or replaced
// meanwhile (ENOENT, EINVAL). The steps of TagOpen and TagCheck have a path as their name.
// TagCheck fails with ESTALE if another file is there. TagOverlay fails where the kernel has no overlay
// for ordinary users (before Linux 5.11), and on file systems that can't be part of one.
const (
	TagUnshare fork.Tag = "namespaces"
	TagSetup   fork.Tag = "mount namespace"
	TagCover   fork.Tag = "mount namespace, covering"
	TagOpen    fork.Tag = "mount namespace, opening"
	TagCheck   fork.Tag = "checking"
	TagIPC     fork.Tag = "IPC namespace"
	TagProc    fork.Tag = "PID namespace, its /proc"
	TagOverlay fork.Tag = "overlay"
)

// Request says what a namespace is wanted for.
type Request struct {
	Policy  *resolve.Resolved
	Host    *host.Host
	UserNS  bool   // a user namespace is needed for it
	By      string // what allows the user namespace; may be ""
	None    string // why there can be no namespace, or ""
	NoIPC   string // why there can be no IPC namespace, or ""
	NoPids  string // why there can be no PID namespace, or ""
	NoHome  string // why there can be no private home, or ""
	Handled uint64 // the rights that Landlock handles

	ShareIPC       bool // keep the caller's System V IPC and /dev/shm
	ShareTerminals bool // keep the caller's /dev/pts
	LeaveMetadata  bool // make no namespace only for the metadata of files

	Trees  []deny.Tree // what the policy allows, minus what it denies
	Mounts []Mount     // for denials, zsbx's own files and the protected set
	Hide   []string    // directories that the command has no reason to read
	Try    Try
	Table  func() Table // of this process
}

// Result is the answer to a Request.
type Result struct {
	Plan *Plan  // nil for no namespace
	None string // why there is no namespace

	Unseen   *Unseen // a protected path that may have other names; nil for none
	Metadata string  // why the metadata of files outside stays open despite the plan, or ""
	IPC      string  // why System V IPC and /dev/shm are shared, or ""
	Home     string  // why there is no private home although the policy asks for it, or ""
	Pids     string  // why there are no private process ids although the policy asks for them, or ""
	Try      string  // why there are no layers although the policy asks for them, or ""
	Tmp      string  // what /tmp and /var/tmp are for the command; "" without a private temporary directory
}

// New decides whether there is a namespace and what it does.
func New(q Request) Result {
	writable := WritableTrees(q.Policy.Paths)
	why := q.Reasons(writable != nil)
	switch {
	case q.None != "":
		why := NoNamespace(q.None)
		return Result{None: why, Home: why, Pids: why, Try: why, Tmp: q.tmp(nil)}
	case len(why) == 0:
		const none = "accepted, and nothing else needs a mount namespace"
		return Result{None: none, Home: q.NoHome, Pids: q.NoPids, Try: q.Try.None, Tmp: q.tmp(nil)}
	}
	overlays, noTry := q.Try.Overlays(q.Policy, writable, q.Table)
	q.Mounts = q.Try.unprotected(q.Mounts, overlays)
	mp := &Plan{UserNS: q.UserNS, By: q.By, Why: why, Writable: writable, Overlays: overlays}
	mp.Temp = temporary(q.Policy, overlays)
	mp.Mounts = joinMounts(append(q.Mounts, q.hidden()...))
	// An alias may already be in the list. If it were covered twice, the second check would
	// find the first cover instead of the file.
	more, unseen := aliases(q.Host, q.Table, mp.Mounts)
	mp.Mounts = joinMounts(append(mp.Mounts, more...))
	if mp.UserNS {
		mp.SSH = SSHCopies(q.Policy, q.Host)
	}
	out := Result{Plan: mp, IPC: q.private(mp), Unseen: unseen, Try: noTry}
	out.Home = q.home(mp)
	out.Tmp = q.tmp(mp)
	out.Pids = q.pids(mp)
	if n := len(mp.Writable); n > maxWritable {
		mp.Writable = nil
		if mp.Overlays != nil {
			mp.Overlays = nil
			out.Try = fmt.Sprintf("%d paths are writable, more than %d", n, maxWritable)
		}
		out.Metadata = fmt.Sprintf("%d paths are writable, more than %d", n, maxWritable)
	}
	return out
}

// NoNamespace says that there is no mount namespace, and why.
func NoNamespace(why string) string { return "no mount namespace: " + why }

// hidden returns the masks for Hide.
func (q *Request) hidden() (out []Mount) {
	for _, dir := range q.Hide {
		reachable := slices.ContainsFunc(q.Policy.Paths, func(t resolve.Path) bool { return host.Within(dir, t.Path) })
		if at := q.Host.Look(dir); at.IsDir() && reachable {
			out = append(out, Mount{Path: dir, Kind: Mask, Dir: true, ID: at.Stat.ID})
		}
	}
	return out
}

// Reasons returns what the namespace is for. There are none only if the caller accepts the gaps
// by name. Callers may want that, since some programs check owners, and in a user namespace the
// files of others seem to belong to nobody. outside is false if / is a writable tree.
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
		{q.Policy.Tries() && q.Try.None == "", "layers for what is written"},
		{q.Policy.Private.Home.Is() && q.NoHome == "", "a private home directory"},
		{q.Policy.Private.Pids.Is() && q.NoPids == "", "other processes"},
		{!q.ShareTerminals && OpensTerminals(q.Policy), "other terminals"},
		{q.UserNS && q.Policy.Net.Mode == resolve.NetHosts, "the session's network"},
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
	if mp.UserNS && mp.By != "" {
		how += " (" + mp.By + ")"
	}
	detail := fmt.Sprintf("%s, for %s: %d masked, %d protected", how, strings.Join(mp.Why, ", "), n[Mask], n[Protect])
	if mp.IPC {
		detail += "; private System V IPC"
	}
	for _, d := range mp.Private {
		detail += "; a private " + d.Path
	}
	if len(mp.Overlays) > 0 {
		detail += "; what is written goes to a layer of " + mp.overlaysText()
	}
	if mp.Writable != nil {
		detail += fmt.Sprintf("; read-only except for %d paths", len(mp.Writable))
	}
	return detail
}

// WritableTrees returns the outermost paths that the policy makes writable, or nil if / is one
// of them. It leaves out devices, sockets and pipes, which can be written on a read-only mount,
// too.
func WritableTrees(paths []resolve.Path) []string {
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
	out = slices.Compact(out)
	outer := ""
	return slices.DeleteFunc(out, func(p string) bool {
		if outer == "" || !host.Within(p, outer) {
			outer = p
		}
		return p != outer
	})
}

// joinMounts sorts mounts so that a directory comes before what is in it. It removes duplicates
// and what is inside a masked directory. A mask outranks the other kinds.
func joinMounts(ms []Mount) []Mount {
	rank := map[Kind]int{Mask: 0, Protect: 1, Pin: 2}
	slices.SortStableFunc(ms, func(a, b Mount) int {
		if c := landlock.ComparePaths(a.Path, b.Path); c != 0 {
			return c
		}
		return rank[a.Kind] - rank[b.Kind]
	})
	var out []Mount
	hidden := "" // the last masked directory: nothing below needs a mount
	for _, m := range ms {
		switch {
		case len(out) > 0 && out[len(out)-1].Path == m.Path:
			continue
		case hidden != "" && host.Within(m.Path, hidden):
			continue
		}
		out = append(out, m)
		if m.Kind == Mask && m.Dir {
			hidden = m.Path
		}
	}
	return out
}
