package track

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/enforce/libsystem"
	"github.com/zsbx/zsbx/track/internal/scan"
)

// kernelTable is the process table of macOS, asked about one session.
type kernelTable struct {
	session string
	owner   int // uid that the marker files belong to

	ghosts map[int]bool // pids that nothing is told about, from the last snapshots
}

// szomb is SZOMB of sys/proc.h: only the table entry is left.
const szomb = 5

// scope is whose processes are looked at. The kernel compares effective users;
// no set-uid program can be executed under a profile, so an ordinary user's
// session has processes of that user only.
func scope() int {
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return -1
}

// kinfo lists processes: sysctl(3), kern.proc.
func kinfo() ([]unix.KinfoProc, error) {
	if uid := scope(); uid >= 0 {
		return unix.SysctlKinfoProcSlice("kern.proc.uid", uid)
	}
	return unix.SysctlKinfoProcSlice("kern.proc.all")
}

// Snapshot lists processes twice. The second list has all that is to be known
// of each, but the kernel makes it one process at a time and leaves out those
// that have ended by then; the first has pids only, copied at one moment.
func (t *kernelTable) Snapshot() (scan.Snapshot, error) {
	pids, err := libsystem.ListPids(scope())
	if err != nil {
		return scan.Snapshot{}, err
	}
	ks, err := kinfo()
	if err != nil {
		return scan.Snapshot{}, fmt.Errorf("sysctl kern.proc: %w", err)
	}
	var s scan.Snapshot
	seen := make(map[int]bool, len(ks))
	for i := range ks {
		r := rowOf(&ks[i])
		seen[r.Pid] = true
		s.Rows = append(s.Rows, r)
	}
	for _, pid := range pids {
		if pid <= 1 || seen[pid] {
			continue
		}
		if r, err := lookup(pid); err == nil {
			s.Rows = append(s.Rows, r)
		} else if !t.ghost(pid) {
			s.Gone++
		}
	}
	return s, nil
}

// ghost reports whether a pid without a process is no news: it was so before, and
// is no member. What forks and exits all the time has another pid each time.
func (t *kernelTable) ghost(pid int) bool {
	if t.ghosts[pid] {
		return t.Probe(pid).Match(false) != scan.Member
	}
	if t.ghosts == nil {
		t.ghosts = map[int]bool{}
	}
	t.ghosts[pid] = true
	return false
}

// rowOf reads a struct kinfo_proc (sys/sysctl.h).
func rowOf(k *unix.KinfoProc) scan.Row {
	start := k.Proc.P_starttime
	return scan.Row{
		ID:     scan.ID{Pid: int(k.Proc.P_pid), Start: uint64(start.Sec)*1e6 + uint64(start.Usec)},
		Parent: int(k.Eproc.Ppid),
		Group:  int(k.Eproc.Pgid),
		Zombie: k.Proc.P_stat == szomb,
	}
}

// Lookup asks about one process. An empty answer, which x/sys turns into EIO,
// means that there is none.
func (t *kernelTable) Lookup(pid int) (scan.Row, error) { return lookup(pid) }

func lookup(pid int) (scan.Row, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || err == nil && int(k.Proc.P_pid) != pid {
		return scan.Row{}, syscall.ESRCH
	}
	if err != nil {
		return scan.Row{}, fmt.Errorf("sysctl kern.proc.pid %d: %w", pid, err)
	}
	return rowOf(k), nil
}

// Probe asks the kernel about a process's profile: the paths only where the
// names gave no answer.
func (t *kernelTable) Probe(pid int) scan.Answers {
	a := scan.Answers{Sandboxed: libsystem.SandboxCheck(pid, "", libsystem.FilterNone, ""),
		NameAllow: scan.NoAnswer, NameDeny: scan.NoAnswer, PathAllow: scan.NoAnswer, PathDeny: scan.NoAnswer}
	if a.Sandboxed != scan.Denied {
		return a
	}
	n := fingerprint.Name(t.session)
	a.NameAllow = libsystem.SandboxCheck(pid, "mach-lookup", libsystem.FilterGlobalName, n+".allow")
	a.NameDeny = libsystem.SandboxCheck(pid, "mach-lookup", libsystem.FilterGlobalName, n+".deny")
	if scan.Pair(a.NameAllow, a.NameDeny) != scan.Unclear {
		return a
	}
	a.PathAllow = libsystem.SandboxCheck(pid, "file-read-data", libsystem.FilterPath, fingerprint.Allow(t.session))
	a.PathDeny = libsystem.SandboxCheck(pid, "file-read-data", libsystem.FilterPath, fingerprint.Deny(t.session))
	return a
}

func (t *kernelTable) Markers() error { return checkMarkers(t.session, t.owner) }

func (t *kernelTable) Signal(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

func (t *kernelTable) Now() time.Time { return time.Now() }

func (t *kernelTable) Sleep(d time.Duration) { time.Sleep(d) }
