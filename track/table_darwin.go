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

// snapshot lists processes twice. The second list has all that is to be known
// of each, but the kernel makes it one process at a time and leaves out those
// that have ended by then; the first has pids only, copied at one moment.
func (t *kernelTable) snapshot() (snapshot, error) {
	pids, err := libsystem.ListPids(scope())
	if err != nil {
		return snapshot{}, err
	}
	ks, err := kinfo()
	if err != nil {
		return snapshot{}, fmt.Errorf("sysctl kern.proc: %w", err)
	}
	var s snapshot
	seen := make(map[int]bool, len(ks))
	for i := range ks {
		r := rowOf(&ks[i])
		seen[r.Pid] = true
		s.rows = append(s.rows, r)
	}
	for _, pid := range pids {
		if pid <= 1 || seen[pid] {
			continue
		}
		if r, err := lookup(pid); err == nil {
			s.rows = append(s.rows, r)
		} else if !t.ghost(pid) {
			s.gone++
		}
	}
	return s, nil
}

// ghost reports whether a pid without a process is no news: it was so before, and
// is no member. What forks and exits all the time has another pid each time.
func (t *kernelTable) ghost(pid int) bool {
	if t.ghosts[pid] {
		return t.probe(pid).verdict(false) != member
	}
	if t.ghosts == nil {
		t.ghosts = map[int]bool{}
	}
	t.ghosts[pid] = true
	return false
}

// rowOf reads a struct kinfo_proc (sys/sysctl.h).
func rowOf(k *unix.KinfoProc) row {
	start := k.Proc.P_starttime
	return row{
		ProcID: ProcID{Pid: int(k.Proc.P_pid), Start: uint64(start.Sec)*1e6 + uint64(start.Usec)},
		parent: int(k.Eproc.Ppid),
		group:  int(k.Eproc.Pgid),
		zombie: k.Proc.P_stat == szomb,
	}
}

// lookup asks about one process. An empty answer, which x/sys turns into EIO,
// means that there is none.
func (t *kernelTable) lookup(pid int) (row, error) { return lookup(pid) }

func lookup(pid int) (row, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || err == nil && int(k.Proc.P_pid) != pid {
		return row{}, syscall.ESRCH
	}
	if err != nil {
		return row{}, fmt.Errorf("sysctl kern.proc.pid %d: %w", pid, err)
	}
	return rowOf(k), nil
}

// probe asks the kernel about a process's profile: the paths only where the
// names gave no answer.
func (t *kernelTable) probe(pid int) answers {
	a := answers{sandboxed: libsystem.SandboxCheck(pid, "", libsystem.FilterNone, ""),
		nameAllow: noAnswer, nameDeny: noAnswer, pathAllow: noAnswer, pathDeny: noAnswer}
	if a.sandboxed != denied {
		return a
	}
	n := fingerprint.Name(t.session)
	a.nameAllow = libsystem.SandboxCheck(pid, "mach-lookup", libsystem.FilterGlobalName, n+".allow")
	a.nameDeny = libsystem.SandboxCheck(pid, "mach-lookup", libsystem.FilterGlobalName, n+".deny")
	if pair(a.nameAllow, a.nameDeny) != unclear {
		return a
	}
	a.pathAllow = libsystem.SandboxCheck(pid, "file-read-data", libsystem.FilterPath, fingerprint.Allow(t.session))
	a.pathDeny = libsystem.SandboxCheck(pid, "file-read-data", libsystem.FilterPath, fingerprint.Deny(t.session))
	return a
}

func (t *kernelTable) markers() error { return checkMarkers(t.session, t.owner) }

func (t *kernelTable) signal(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

func (t *kernelTable) now() time.Time { return time.Now() }

func (t *kernelTable) sleep(d time.Duration) { time.Sleep(d) }
