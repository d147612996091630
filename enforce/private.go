package enforce

import (
	"cmp"
	"io/fs"
	"slices"

	"github.com/zsbx/zsbx/policy"
)

// PrivateDir is a directory of the baseline in which the user's other programs
// keep what no rule tells from the command's own. An empty file system is put
// onto it, which lasts as long as the command's processes.
type PrivateDir struct {
	Path   string
	Kind   string // of the file system: tmpfs or devpts
	Rights uint64 // what Landlock allows in it
}

// The kinds of PrivateDir.
const (
	tmpfs  = "tmpfs"  // tmpfs(5): files in memory
	devpts = "devpts" // pseudo-terminals (pts(4)), a set of its own
)

// ptsDir is where pseudo-terminals are.
const ptsDir = "/dev/pts"

// shmDir is where shm_open(3) and sem_open(3) make their files.
const shmDir = "/dev/shm"

// private plans what the command does not share with other programs. It says
// why it shares System V IPC all the same, or "".
func (q *mountRequest) private(mp *MountPlan) (shares string) {
	if !q.shareTerminals {
		q.privateDir(mp, ptsDir, devpts)
	}
	if q.shareIPC {
		return ""
	}
	mp.IPC = q.noIPC == ""
	if within(q.policy.TempDir, shmDir) {
		return cmp.Or(q.noIPC, "the temporary directory lies in "+shmDir)
	}
	q.privateDir(mp, shmDir, tmpfs)
	return q.noIPC
}

// privateDir makes a directory private that the baseline alone allows: whoever
// names it, or something in it, means what is there. No rule is made for it
// then: by another mount of the same file system it would lead to what is
// covered, and Landlock does not look at it on the way up from what covers it.
func (q *mountRequest) privateDir(mp *MountPlan, dir, kind string) {
	r := q.policy
	i := baselineDir(r, dir)
	if i < 0 || within(r.Dir, r.Paths[i].Path) {
		return
	}
	at := r.Paths[i].Path
	around := func(t policy.Path) bool { return t.Access&policy.Write != 0 && within(at, t.Path) }
	named := slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return !ofBaseline(t) && (within(t.Path, at) || around(t)) || t.Path != at && around(t)
	})
	left := slices.IndexFunc(q.trees, func(t tree) bool { return t.path == at && t.mode.IsDir() })
	if named || left < 0 {
		return
	}
	var access policy.Access
	for _, t := range q.trees {
		if t.path == at {
			access |= t.access
		}
	}
	mp.Private = append(mp.Private, PrivateDir{Path: at, Kind: kind, Rights: rights(access, at, fs.ModeDir, q.handled)})
	mp.Mounts = slices.DeleteFunc(mp.Mounts, func(o Mount) bool { return within(o.Path, at) })
	mp.Writable = slices.DeleteFunc(mp.Writable, func(p string) bool { return p == at })
}

// baselineDir is the place of the baseline's rule for a directory, or -1.
func baselineDir(r *policy.Resolved, dir string) int {
	return slices.IndexFunc(r.Paths, func(t policy.Path) bool { return t.Rule.Path == dir && ofBaseline(t) && t.Mode.IsDir() })
}

func ofBaseline(t policy.Path) bool { return t.Rule.Origin.Source == "baseline" }

// opensTerminals reports whether the baseline lets the command at /dev/pts.
func opensTerminals(r *policy.Resolved) bool { return baselineDir(r, ptsDir) >= 0 }
