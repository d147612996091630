package mounts

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/policy"
)

// Landlock's rights are inherited through mount points: what the rule of a private
// directory allows, it allows in all that is mounted in it. So nothing is mounted there
// but what has the same rights (the temporary directory), what can't be read (sockets),
// and, in a private home, what may be read: what else a rule does not allow is taken
// back by the mount.

// PrivateDir is a directory in which the user's other programs keep what no rule
// tells from the command's own. An empty file system is put onto it, which lasts
// as long as the command's processes.
type PrivateDir struct {
	Path   string
	Kind   string // of the file system: tmpfs, devpts or proc; "" with From
	Rights uint64 // what Landlock allows in it, and in all that is mounted there
	Size   int    // the most that a tmpfs holds, in percent of the memory
	From   string // the directory that is made and put there, in the place of a file system
	Made   []Back // what is only made in it: links that are there outside, the working directory
	Back   []Back // what is mounted in it, the outer ones first
}

// Back is what lies in a private directory at its own name, as it does outside. What
// else is in the directory, the command made.
type Back struct {
	Path   string
	Mode   fs.FileMode   // its type
	To     string        // of a link
	ID     policy.FileID // what it has to be when it is mounted
	Access policy.Access // the mount takes back what else the directory's rights allow, but for reading
}

// The kinds of PrivateDir.
const (
	tmpfs  = "tmpfs"  // tmpfs(5): files in memory
	devpts = "devpts" // pseudo-terminals (pts(4)), a set of its own
	proc   = "proc"   // the processes of the PID namespace (proc(5)), read-only
)

const (
	// PtsDir is where pseudo-terminals are.
	PtsDir = "/dev/pts"
	// ShmDir is where shm_open(3) and sem_open(3) make their files.
	ShmDir = "/dev/shm"

	procDir = "/proc"
)

// tmpDirs are where programs that do not ask for TMPDIR make their files.
func tmpDirs() []string { return []string{"/tmp", "/var/tmp"} }

// tmpShare is the most that a private directory for temporary files holds, in
// percent of the machine's memory (tmpfs(5), size).
const tmpShare = 25

// private plans what the command does not share with other programs. It says
// why it shares System V IPC all the same, or "".
func (q *Request) private(mp *Plan) (shares string) {
	if !q.ShareTerminals {
		q.ofBaseline(mp, PrivateDir{Path: PtsDir, Kind: devpts})
	}
	if q.ShareIPC {
		return ""
	}
	mp.IPC = q.NoIPC == ""
	if policy.Within(q.Policy.TempDir, ShmDir) {
		return cmp.Or(q.NoIPC, "the temporary directory lies in "+ShmDir)
	}
	q.ofBaseline(mp, PrivateDir{Path: ShmDir, Kind: tmpfs, Size: 50})
	return q.NoIPC
}

// ofBaseline makes a directory private that the baseline alone allows: whoever
// names it, or something in it, means what is there. No rule is made for it
// then: by another mount of the same file system it would lead to what is
// covered, and Landlock does not look at it on the way up from what covers it.
func (q *Request) ofBaseline(mp *Plan, d PrivateDir) {
	i := baselineDir(q.Policy, d.Path)
	if i < 0 {
		return
	}
	at := q.Policy.Paths[i].Path
	own := func(t *policy.Path) bool {
		within := policy.Within(t.Path, at)
		return within && ofBaseline(t) || !within && t.Access&policy.Write == 0
	}
	var access policy.Access
	for _, t := range q.Trees {
		if t.Path == at {
			access |= t.Access
		}
	}
	if access == 0 || policy.Within(q.Policy.Dir, at) || q.taken(at, own) != "" {
		return
	}
	d.Path, d.Rights = at, landlock.Rights(access, at, fs.ModeDir, q.Handled)
	mp.Private = append(mp.Private, d)
	mp.Mounts = slices.DeleteFunc(mp.Mounts, func(o Mount) bool { return policy.Within(o.Path, at) })
	mp.Writable = slices.DeleteFunc(mp.Writable, func(p string) bool { return p == at })
}

// taken says which rule is for a directory, something in it, or what is around, and does
// not keep the directory from being private, as own has it, or "".
func (q *Request) taken(dir string, own func(*policy.Path) bool) string {
	for _, paths := range [][]policy.Path{q.Policy.Paths, q.Policy.Net.Unix} {
		for i := range paths {
			t := &paths[i]
			if (policy.Within(t.Path, dir) || policy.Within(dir, t.Path)) && !own(t) {
				return fmt.Sprintf("%s is allowed (%s)", t.Path, t.Rule.Origin)
			}
		}
	}
	return ""
}

// baselineDir is the place of the baseline's rule for a directory, or -1.
func baselineDir(r *policy.Resolved, dir string) int {
	return slices.IndexFunc(r.Paths, func(t policy.Path) bool { return t.Rule.Path == dir && ofBaseline(&t) && t.Mode.IsDir() })
}

func ofBaseline(t *policy.Path) bool { return t.Rule.Origin.Source == "baseline" }

// OpensTerminals reports whether the baseline lets the command at /dev/pts.
func OpensTerminals(r *policy.Resolved) bool { return baselineDir(r, PtsDir) >= 0 }

// pids plans process ids of the command's own, and says why it has none
// although the policy asks for them, or "". What names processes shows the own
// ones only when /proc is the namespace's: who may look into that must be able to
// look into this, all of it or none.
func (q *Request) pids(mp *Plan) string {
	if !q.Policy.Private.Pids.Is() || q.NoPids != "" {
		return q.NoPids
	}
	var access policy.Access
	for _, t := range q.Trees {
		switch {
		case t.Path == procDir && !t.ListOnly, policy.Within(procDir, t.Path):
			access |= t.Access & policy.Read
		case policy.Within(t.Path, procDir):
			return fmt.Sprintf("of %s a part is allowed (%s), or denied", procDir, t.Path)
		}
	}
	mp.Pids = true
	mp.Private = append(mp.Private, PrivateDir{Path: procDir, Kind: proc, Rights: landlock.Rights(access, procDir, fs.ModeDir, q.Handled)})
	return ""
}

// tmp makes the directories for everybody's temporary files private, where the
// policy has a temporary directory, and says in words what became of them. That
// directory stays at its own name, on disk. Where a rule names more in one of them, it
// stays as it is, and so do all without a namespace.
func (q *Request) tmp(mp *Plan) string {
	r := q.Policy
	i := slices.IndexFunc(q.Trees, func(t deny.Tree) bool { return t.Path == r.TempDir && t.Mode.IsDir() })
	if i < 0 || q.Host == nil {
		return ""
	}
	stays := func(t *policy.Path) bool { return t.Path == r.TempDir || t.Mode&fs.ModeSocket != 0 }
	var said []string
	for _, name := range tmpDirs() {
		dir, st, err := q.Host.RealPath(name)
		why := ""
		switch {
		case err != nil || !st.Mode.IsDir() || mp.PrivateIn(dir) == dir:
			continue
		case mp == nil:
			why = "no mount namespace"
		case slices.ContainsFunc(r.Deny, func(d policy.DenyPath) bool { return d.Covers(dir) }):
			why = "it is denied"
		case slices.ContainsFunc(mp.Private, func(d PrivateDir) bool { return policy.Within(d.Path, dir) || policy.Within(dir, d.Path) }):
			why = "it shares a place with another private directory"
		case policy.Within(r.Dir, dir):
			why = "the working directory lies there"
		default:
			why = q.taken(dir, stays)
		}
		if why != "" {
			said = append(said, name+" as outside, closed but for what is allowed: "+why)
			continue
		}
		d := PrivateDir{Path: dir, Kind: tmpfs, Size: tmpShare, Rights: landlock.Rights(q.Trees[i].Access, dir, fs.ModeDir, q.Handled)}
		q.keep(&d)
		mp.Private = append(mp.Private, d)
		said = append(said, fmt.Sprintf("%s of the command's own, in memory, at most %d %% of it", dir, tmpShare))
	}
	return strings.Join(said, "; ")
}
