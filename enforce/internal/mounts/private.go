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
	Kind   string // of the file system: tmpfs or devpts
	Rights uint64 // what Landlock allows in it, and in all that is mounted there
	Size   int    // the most that a tmpfs holds, in percent of the memory; 0 for its default, 50
	From   string // the directory that is made and put there, in the place of a file system
	Stubs  []Stub // the outer ones first
	Back   []Back // likewise
}

// Stub is made in a private directory: a link that is there outside, or what something
// is mounted on. What else is in the directory, the command made.
type Stub struct {
	Path string
	Mode fs.FileMode // its type
	To   string      // of a link
}

// Back is what lies in a private directory at its own name, as it does outside.
type Back struct {
	Path   string
	ID     policy.FileID // what it has to be when it is mounted
	Access policy.Access // the mount takes back what else the directory's rights allow, but for reading
}

// The kinds of PrivateDir.
const (
	tmpfs  = "tmpfs"  // tmpfs(5): files in memory
	devpts = "devpts" // pseudo-terminals (pts(4)), a set of its own
	bind   = "bind"   // no file system of its own, but a directory of another one
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
		q.ofBaseline(mp, PtsDir, devpts)
	}
	if q.ShareIPC {
		return ""
	}
	mp.IPC = q.NoIPC == ""
	if policy.Within(q.Policy.TempDir, ShmDir) {
		return cmp.Or(q.NoIPC, "the temporary directory lies in "+ShmDir)
	}
	q.ofBaseline(mp, ShmDir, tmpfs)
	return q.NoIPC
}

// ofBaseline makes a directory private that the baseline alone allows: whoever
// names it, or something in it, means what is there. No rule is made for it
// then: by another mount of the same file system it would lead to what is
// covered, and Landlock does not look at it on the way up from what covers it.
func (q *Request) ofBaseline(mp *Plan, dir, kind string) {
	i := baselineDir(q.Policy, dir)
	if i < 0 {
		return
	}
	at := q.Policy.Paths[i].Path
	own := func(t policy.Path) bool { return ofBaseline(t) && policy.Within(t.Path, at) }
	var access policy.Access
	for _, t := range q.Trees {
		if t.Path == at {
			access |= t.Access
		}
	}
	if access == 0 || q.taken(at, policy.Write, own) != "" {
		return
	}
	mp.Private = append(mp.Private, PrivateDir{Path: at, Kind: kind, Rights: landlock.Rights(access, at, fs.ModeDir, q.Handled)})
	mp.Mounts = slices.DeleteFunc(mp.Mounts, func(o Mount) bool { return policy.Within(o.Path, at) })
	mp.Writable = slices.DeleteFunc(mp.Writable, func(p string) bool { return p == at })
}

// taken says what lies in a directory and is the user's, or "": the working directory,
// what a rule is for that is not own, or gives such an access to what is around.
func (q *Request) taken(dir string, around policy.Access, own func(policy.Path) bool) string {
	if policy.Within(q.Policy.Dir, dir) {
		return "the working directory lies there"
	}
	for _, t := range q.Policy.Paths {
		if !own(t) && (policy.Within(t.Path, dir) || t.Access&around != 0 && policy.Within(dir, t.Path)) {
			return fmt.Sprintf("%s (%s)", t.Path, t.Rule.Origin)
		}
	}
	return ""
}

// openSocket says which rule for sockets is for a directory in or around another one,
// or "": that would be open.
func (q *Request) openSocket(dir string) string {
	for _, s := range q.Policy.Net.Unix {
		if s.Mode&fs.ModeSocket == 0 && (policy.Within(s.Path, dir) || policy.Within(dir, s.Path)) {
			return fmt.Sprintf("%s (%s) is no socket, and would be open", s.Path, s.Rule.Origin)
		}
	}
	return ""
}

// baselineDir is the place of the baseline's rule for a directory, or -1.
func baselineDir(r *policy.Resolved, dir string) int {
	return slices.IndexFunc(r.Paths, func(t policy.Path) bool { return t.Rule.Path == dir && ofBaseline(t) && t.Mode.IsDir() })
}

func ofBaseline(t policy.Path) bool { return t.Rule.Origin.Source == "baseline" }

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
		if why := q.tmpTaken(mp, dir); why != "" {
			said = append(said, name+" as outside, closed but for what is allowed: "+why)
			continue
		}
		d := PrivateDir{Path: dir, Kind: tmpfs, Size: tmpShare, Rights: landlock.Rights(q.Trees[i].Access, dir, fs.ModeDir, q.Handled)}
		var temp []deny.Tree
		if at := q.Policy.TempDir; at != dir && policy.Within(at, dir) {
			temp = q.Trees[i : i+1]
		}
		q.keep(&d, temp)
		mp.Private = append(mp.Private, d)
		said = append(said, fmt.Sprintf("%s of the command's own, in memory, at most %d %% of it", dir, tmpShare))
	}
	return strings.Join(said, "; ")
}

// tmpTaken says why a directory for temporary files can't be private, or "".
func (q *Request) tmpTaken(mp *Plan, dir string) string {
	if mp == nil {
		return "no mount namespace"
	}
	denied := func(d policy.DenyPath) bool { return d.Covers(dir) }
	other := func(d PrivateDir) bool { return policy.Within(d.Path, dir) || policy.Within(dir, d.Path) }
	if slices.ContainsFunc(q.Policy.Deny, denied) || slices.ContainsFunc(mp.Private, other) {
		return "it is denied, or shares a place with another private directory"
	}
	own := func(t policy.Path) bool { return t.Path == q.Policy.TempDir }
	return cmp.Or(q.taken(dir, policy.Read|policy.Write|policy.Exec, own), q.openSocket(dir))
}
