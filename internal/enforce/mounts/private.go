package mounts

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/internal/enforce/deny"
	"github.com/zsbx/zsbx/internal/enforce/landlock"
	"github.com/zsbx/zsbx/internal/host"
	"github.com/zsbx/zsbx/internal/resolve"
	"github.com/zsbx/zsbx/policy"
)

// Landlock's rights are inherited through mount points. A rule on a private directory also
// holds for all that is mounted in it. So only three things are mounted there: the temporary
// directory, which has the same rights; sockets, which can't be read; and, in a private home,
// what may be read. Other rights that a rule lacks are taken back by the mount's attributes.

// PrivateDir is a directory in which no rule can distinguish other programs' files from the
// command's. An empty file system is mounted on it, which lasts as long as the command's
// processes.
type PrivateDir struct {
	Path   string
	Kind   string // of the file system: tmpfs, devpts or proc; "" with From
	Rights uint64 // what Landlock allows in it and in all that is mounted there
	Size   int    // maximum size of a tmpfs, in percent of the memory
	From   string // a directory that is made and mounted there instead of a file system
	Made   []Back // what is only made in it: links that exist outside, the working directory
	Back   []Back // what is mounted in it, outer ones first
}

// Back is something of the outside that keeps its name in a private directory. All else in the
// directory is made by the command.
type Back struct {
	Path   string
	Mode   fs.FileMode   // its type
	To     string        // a link's target
	ID     host.FileID   // the inode that it must be when mounted
	Access policy.Access // the mount takes back the directory's other rights, except reading
}

// The kinds of PrivateDir.
const (
	tmpfs  = "tmpfs"  // tmpfs(5): files in memory
	devpts = "devpts" // a separate set of pseudo-terminals (pts(4))
	Proc   = "proc"   // the processes of the PID namespace (proc(5)), read-only
)

const (
	// PtsDir has the pseudo-terminals.
	PtsDir = "/dev/pts"
	// ShmDir is where shm_open(3) and sem_open(3) make their files.
	ShmDir = "/dev/shm"

	procDir = "/proc"
)

// tmpDirs returns the directories where programs that ignore TMPDIR make files.
func tmpDirs() []string { return []string{"/tmp", "/var/tmp"} }

// tmpShare is the maximum size of a private directory for temporary files, in percent of the
// machine's memory (tmpfs(5), size).
const tmpShare = 25

// private plans private terminals, shared memory and System V IPC. It returns why System V IPC
// is shared nevertheless, or "".
func (q *Request) private(mp *Plan) (shares string) {
	if !q.ShareTerminals {
		q.ofBaseline(mp, PrivateDir{Path: PtsDir, Kind: devpts})
	}
	if q.ShareIPC {
		return ""
	}
	mp.IPC = q.NoIPC == ""
	if host.Within(q.Policy.TempDir, ShmDir) {
		return cmp.Or(q.NoIPC, "the temporary directory is in "+ShmDir)
	}
	q.ofBaseline(mp, PrivateDir{Path: ShmDir, Kind: tmpfs, Size: 50})
	return q.NoIPC
}

// ofBaseline makes a directory private if only the baseline allows it. A user's rule for it, or
// for something in it, means the real one. The private directory gets no rule by path: that
// rule would open the covered directory by another mount of its file system, and Landlock would
// not find it on the way up from the new file system.
func (q *Request) ofBaseline(mp *Plan, d PrivateDir) {
	i := baselineDir(q.Policy, d.Path)
	if i < 0 {
		return
	}
	at := q.Policy.Paths[i].Path
	harmless := func(t *resolve.Path) bool {
		within := host.Within(t.Path, at)
		return within && ofBaseline(t) || !within && t.Access&policy.Write == 0
	}
	var access policy.Access
	for _, t := range q.Trees {
		if t.Path == at {
			access |= t.Access
		}
	}
	if access == 0 || host.Within(q.Policy.Dir, at) || q.taken(at, harmless) != "" {
		return
	}
	d.Path = at
	d.Rights = landlock.Rights(access, at, fs.ModeDir, q.Handled)
	mp.Private = append(mp.Private, d)
	mp.Mounts = slices.DeleteFunc(mp.Mounts, func(o Mount) bool { return host.Within(o.Path, at) })
	mp.Writable = slices.DeleteFunc(mp.Writable, func(p string) bool { return p == at })
}

// taken returns a rule for a directory, for something in it or for something around it that keeps
// the directory from being private, or "". It leaves out the rules that harmless says do not.
func (q *Request) taken(dir string, harmless func(*resolve.Path) bool) string {
	for _, paths := range [][]resolve.Path{q.Policy.Paths, q.Policy.Net.Unix} {
		for i := range paths {
			t := &paths[i]
			if (host.Within(t.Path, dir) || host.Within(dir, t.Path)) && !harmless(t) {
				return fmt.Sprintf("%s is allowed (%s)", t.Path, t.Rule.Origin)
			}
		}
	}
	return ""
}

// baselineDir returns the index of the baseline's rule for a directory, or -1.
func baselineDir(r *resolve.Resolved, dir string) int {
	return slices.IndexFunc(r.Paths, func(t resolve.Path) bool {
		return t.Rule.Path == dir && ofBaseline(&t) && t.Mode.IsDir()
	})
}

func ofBaseline(t *resolve.Path) bool { return t.Rule.Origin.Source == "baseline" }

// OpensTerminals reports whether the baseline allows /dev/pts.
func OpensTerminals(r *resolve.Resolved) bool { return baselineDir(r, PtsDir) >= 0 }

// pids plans private process ids. If the policy asks for them but that is impossible, it
// returns why. The namespace needs its own /proc, or /proc would show other processes. One rule
// is for all of the new /proc, so the policy must allow all of /proc or nothing in it.
func (q *Request) pids(mp *Plan) string {
	if !q.Policy.Private.Pids.Is() || q.NoPids != "" {
		return q.NoPids
	}
	var access policy.Access
	for _, t := range q.Trees {
		switch {
		case t.Path == procDir && !t.ListOnly, host.Within(procDir, t.Path):
			access |= t.Access & policy.Read
		case host.Within(t.Path, procDir):
			return fmt.Sprintf("the policy treats parts of %s differently, such as %s", procDir, t.Path)
		}
	}
	mp.Pids = true
	rights := landlock.Rights(access, procDir, fs.ModeDir, q.Handled)
	mp.Private = append(mp.Private, PrivateDir{Path: procDir, Kind: Proc, Rights: rights})
	return ""
}

// tmp makes /tmp and /var/tmp private if the policy has a temporary directory, and returns a
// description of the result. The temporary directory keeps its name, on disk. A directory stays
// shared if a rule names something else in it, or if there is no namespace.
func (q *Request) tmp(mp *Plan) string {
	i := slices.IndexFunc(q.Trees, func(t deny.Tree) bool { return t.Path == q.Policy.TempDir && t.Mode.IsDir() })
	if i < 0 || q.Host == nil {
		return ""
	}
	var said []string
	for _, name := range tmpDirs() {
		dir, st, err := q.Host.RealPath(name)
		if err != nil || !st.Mode.IsDir() || mp.PrivateIn(dir) == dir {
			continue
		}
		if why := q.sharedTmp(mp, dir); why != "" {
			said = append(said, name+" as outside, closed except for what is allowed: "+why)
			continue
		}
		rights := landlock.Rights(q.Trees[i].Access, dir, fs.ModeDir, q.Handled)
		d := PrivateDir{Path: dir, Kind: tmpfs, Size: tmpShare, Rights: rights}
		q.keep(&d)
		mp.Private = append(mp.Private, d)
		said = append(said, fmt.Sprintf("a private %s, in memory, at most %d %% of it", dir, tmpShare))
	}
	return strings.Join(said, "; ")
}

// sharedTmp returns why a directory for temporary files can't be private, or "".
func (q *Request) sharedTmp(mp *Plan, dir string) string {
	if mp == nil {
		return "no mount namespace"
	}
	r := q.Policy
	if slices.ContainsFunc(r.Deny, func(d resolve.DenyPath) bool { return d.Covers(dir) }) {
		return "it is denied"
	}
	if slices.ContainsFunc(mp.Private, func(d PrivateDir) bool {
		return host.Within(d.Path, dir) || host.Within(dir, d.Path)
	}) {
		return "it overlaps another private directory"
	}
	if host.Within(r.Dir, dir) {
		return "the working directory is there"
	}
	return q.taken(dir, func(t *resolve.Path) bool { return t.Path == r.TempDir || t.Mode&fs.ModeSocket != 0 })
}
