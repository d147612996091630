package enforce

import (
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

// addPrivate plans what the command does not share with other programs.
func (m *mounts) addPrivate(mp *MountPlan) {
	if !m.opts.ShareTerminals {
		m.privateDir(mp, ptsDir, devpts)
	}
	if m.opts.ShareIPC {
		return
	}
	if mp.IPC = m.p.Caps.IPCReason == ""; !mp.IPC {
		m.p.addGap(ipcGap(m.p.Caps.IPCReason, ""))
	}
	if within(m.p.Policy.TempDir, shmDir) {
		m.p.addGap(ipcGap("the temporary directory lies in "+shmDir, ""))
		return
	}
	m.privateDir(mp, shmDir, tmpfs)
}

// privateDir makes a directory private that the baseline alone allows: whoever
// names it, or something in it, means what is there. The rule for it goes: by
// another mount of the same file system it would lead to what is covered, and
// Landlock does not look at it on the way up from what covers it.
func (m *mounts) privateDir(mp *MountPlan, dir, kind string) {
	r, rs := m.p.Policy, m.p.Landlock
	i := baselineDir(r, dir)
	if i < 0 || within(r.Dir, r.Paths[i].Path) {
		return
	}
	at := r.Paths[i].Path
	named := slices.ContainsFunc(r.Paths, func(t policy.Path) bool {
		return !ofBaseline(t) && (within(t.Path, at) || t.Access&policy.Write != 0 && within(at, t.Path))
	})
	i = slices.IndexFunc(rs.Paths, func(t PathRule) bool { return t.Path == at && t.Dir })
	if named || i < 0 {
		return
	}
	mp.Private = append(mp.Private, PrivateDir{Path: at, Kind: kind, Rights: rs.Paths[i].Rights})
	rs.Paths = slices.Delete(rs.Paths, i, i+1)
	mp.Mounts = slices.DeleteFunc(mp.Mounts, func(o Mount) bool { return within(o.Path, at) })
	mp.Writable = slices.DeleteFunc(mp.Writable, func(p string) bool { return p == at })
}

// baselineDir is the place of the baseline's rule for a directory, or -1.
func baselineDir(r *policy.Resolved, dir string) int {
	return slices.IndexFunc(r.Paths, func(t policy.Path) bool { return t.Rule.Path == dir && ofBaseline(t) && t.Mode.IsDir() })
}

func ofBaseline(t policy.Path) bool { return t.Rule.Origin.Source == "baseline" }

// sharedGaps is what addPrivate would have kept apart.
func (m *mounts) sharedGaps(why, hint string) {
	m.p.addGap(ipcGap(why, hint))
	if m.opensTerminals() {
		m.p.addGap(Gap{Name: GapTerminals, Kind: Hardening, Promise: "no access to the user's other terminals", Why: why, Hint: hint})
	}
}

// opensTerminals says whether the baseline lets the command at /dev/pts.
func (m *mounts) opensTerminals() bool { return baselineDir(m.p.Policy, ptsDir) >= 0 }

func ipcGap(why, hint string) Gap {
	return Gap{Name: GapIPC, Kind: Hardening,
		Promise: "no shared memory, semaphores and message queues of programs outside", Why: why, Hint: hint}
}
