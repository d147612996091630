package track

import (
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/internal/fingerprint"
	"github.com/zsbx/zsbx/internal/libsystem"
	"github.com/zsbx/zsbx/internal/track/proc"
	"github.com/zsbx/zsbx/internal/track/scan"
)

// kernelTable is macOS' process table, for one session.
type kernelTable struct {
	session string
	ghosts  map[int]bool // pids without information in earlier snapshots
}

// Snapshot lists processes twice. The first list has only pids, copied at one moment. The
// second has all information, but the kernel makes it one process at a time and leaves out
// those that have ended by then.
func (t *kernelTable) Snapshot() ([]Proc, error) {
	uid := os.Geteuid()
	if uid == 0 {
		uid = -1 // all
	}
	pids, err := libsystem.ListPids(uid)
	if err != nil {
		return nil, err
	}
	all, err := proc.Snapshot()
	if err != nil {
		return nil, err
	}
	rows := slices.Collect(maps.Values(all.Procs))
	for _, pid := range pids {
		if _, seen := all.Procs[pid]; pid <= 1 || seen {
			continue
		}
		if r, err := proc.Look(pid); err == nil {
			rows = append(rows, r)
		} else if !t.ghost(pid) {
			rows = append(rows, Proc{ID: ProcID{Pid: pid}, State: "X"})
		}
	}
	return rows, nil
}

// ghost reports whether a pid without a process can be ignored, because it was already so
// before and is no member. A process that forks and exits all the time has another pid each
// time.
func (t *kernelTable) ghost(pid int) bool {
	if t.ghosts[pid] {
		return t.Probe(pid).Match() != scan.Member
	}
	if t.ghosts == nil {
		t.ghosts = map[int]bool{}
	}
	t.ghosts[pid] = true
	return false
}

// Lookup looks at one process. It returns ESRCH if there is none.
func (t *kernelTable) Lookup(pid int) (Proc, error) { return proc.Look(pid) }

// Probe asks the kernel about a process's profile.
func (t *kernelTable) Probe(pid int) (a scan.Answers) {
	a.Sandboxed, a.Allow, a.Deny = fingerprint.Ask(pid, t.session)
	return a
}

func (t *kernelTable) Signal(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

func (t *kernelTable) Now() time.Time { return time.Now() }

func (t *kernelTable) Sleep(d time.Duration) { time.Sleep(d) }
