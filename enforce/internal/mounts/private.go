package mounts

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"

	"github.com/zsbx/zsbx/enforce/internal/deny"
	"github.com/zsbx/zsbx/enforce/internal/landlock"
	"github.com/zsbx/zsbx/policy"
)

// PrivateDir is a directory in which the user's other programs keep what no rule
// tells from the command's own. An empty file system is put onto it, which lasts
// as long as the command's processes.
type PrivateDir struct {
	Path   string
	Kind   string // of the file system: tmpfs or devpts
	Rights uint64 // what Landlock allows in it, and in all that is mounted there
	Size   int    // the most that a tmpfs holds, in percent of the memory; 0 for its default, 50
	From   string // the directory that is put there, in the place of a file system
	Back   []Back // the outer ones first
	Links  []Link
	Dirs   []string // that have to be there, empty
}

// The kinds of PrivateDir.
const (
	tmpfs  = "tmpfs"  // tmpfs(5): files in memory
	devpts = "devpts" // pseudo-terminals (pts(4)), a set of its own
	bind   = "bind"   // no file system of its own, but a directory of another one
	proc   = "proc"   // the processes of the PID namespace (proc(5)), read-only
)

// PtsDir is where pseudo-terminals are.
const PtsDir = "/dev/pts"

// ShmDir is where shm_open(3) and sem_open(3) make their files.
const ShmDir = "/dev/shm"

// private plans what the command does not share with other programs. It says
// why it shares System V IPC all the same, or "".
func (q *Request) private(mp *Plan) (shares string) {
	if !q.ShareTerminals {
		q.privateDir(mp, PtsDir, devpts)
	}
	if q.ShareIPC {
		return ""
	}
	mp.IPC = q.NoIPC == ""
	if policy.Within(q.Policy.TempDir, ShmDir) {
		return cmp.Or(q.NoIPC, "the temporary directory lies in "+ShmDir)
	}
	q.privateDir(mp, ShmDir, tmpfs)
	return q.NoIPC
}

// privateDir makes a directory private that the baseline alone allows: whoever
// names it, or something in it, means what is there. No rule is made for it
// then: by another mount of the same file system it would lead to what is
// covered, and Landlock does not look at it on the way up from what covers it.
func (q *Request) privateDir(mp *Plan, dir, kind string) {
	r := q.Policy
	i := baselineDir(r, dir)
	if i < 0 || policy.Within(r.Dir, r.Paths[i].Path) {
		return
	}
	at := r.Paths[i].Path
	around := func(t policy.Path) bool { return t.Access&policy.Write != 0 && policy.Within(at, t.Path) }
	named := slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return !ofBaseline(t) && (policy.Within(t.Path, at) || around(t)) || t.Path != at && around(t)
	})
	left := slices.IndexFunc(q.Trees, func(t deny.Tree) bool { return t.Path == at && t.Mode.IsDir() })
	if named || left < 0 {
		return
	}
	var access policy.Access
	for _, t := range q.Trees {
		if t.Path == at {
			access |= t.Access
		}
	}
	mp.Private = append(mp.Private, PrivateDir{Path: at, Kind: kind, Rights: landlock.Rights(access, at, fs.ModeDir, q.Handled)})
	mp.Mounts = slices.DeleteFunc(mp.Mounts, func(o Mount) bool { return policy.Within(o.Path, at) })
	mp.Writable = slices.DeleteFunc(mp.Writable, func(p string) bool { return p == at })
}

// procDir is where processes are.
const procDir = "/proc"

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
	rights := landlock.Rights(access, procDir, fs.ModeDir, q.Handled)
	mp.Pids = true
	mp.Private = append(mp.Private, PrivateDir{Path: procDir, Kind: proc, Rights: rights})
	return ""
}

// baselineDir is the place of the baseline's rule for a directory, or -1.
func baselineDir(r *policy.Resolved, dir string) int {
	return slices.IndexFunc(r.Paths, func(t policy.Path) bool { return t.Rule.Path == dir && ofBaseline(t) && t.Mode.IsDir() })
}

func ofBaseline(t policy.Path) bool { return t.Rule.Origin.Source == "baseline" }

// OpensTerminals reports whether the baseline lets the command at /dev/pts.
func OpensTerminals(r *policy.Resolved) bool { return baselineDir(r, PtsDir) >= 0 }
