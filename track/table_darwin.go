package track

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/zsbx/zsbx/enforce/fingerprint"
	"github.com/zsbx/zsbx/enforce/libsystem"
	"github.com/zsbx/zsbx/track/internal/proc"
	"github.com/zsbx/zsbx/track/internal/scan"
)

// kernelTable is the process table of macOS, asked about one session.
type kernelTable struct {
	session string
	owner   int // uid that the marker files belong to

	ghosts map[int]bool // pids that nothing is told about, from the last snapshots
}

// effectiveUser is whose processes are looked at, -1 for all. The kernel compares
// effective users; no set-uid program can be executed under a profile, so an
// ordinary user's session has processes of that user only.
func effectiveUser() int {
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return -1
}

// Snapshot lists processes twice. The second list has all that is to be known
// of each, but the kernel makes it one process at a time and leaves out those
// that have ended by then; the first has pids only, copied at one moment.
func (t *kernelTable) Snapshot() (scan.Snapshot, error) {
	pids, err := libsystem.ListPids(effectiveUser())
	if err != nil {
		return scan.Snapshot{}, err
	}
	rows, err := proc.List(effectiveUser())
	if err != nil {
		return scan.Snapshot{}, err
	}
	s := scan.Snapshot{Rows: rows}
	seen := make(map[int]bool, len(rows))
	for _, r := range rows {
		seen[r.Pid] = true
	}
	for _, pid := range pids {
		if pid <= 1 || seen[pid] {
			continue
		}
		if r, err := proc.Look(pid); err == nil {
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

// Lookup asks about one process; ESRCH if there is none.
func (t *kernelTable) Lookup(pid int) (Proc, error) { return proc.Look(pid) }

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

// The marker files of a session on macOS. They have to exist while processes
// are asked about them: a missing path counts as denied. The session's own
// profile keeps its processes from changing them.

// makeMarkers makes the directory and the two files. A directory that exists
// already is an error: session ids are never used twice.
func makeMarkers(session string) error {
	err := os.Mkdir(fingerprint.Dir(session), 0o700)
	if err == nil {
		err = errors.Join(os.WriteFile(fingerprint.Allow(session), nil, 0o600), os.WriteFile(fingerprint.Deny(session), nil, 0o600),
			checkMarkers(session, os.Geteuid()))
		if err != nil {
			_ = removeMarkers(session, os.Geteuid())
		}
	}
	if err != nil {
		return fmt.Errorf("making the session's markers: %w", err)
	}
	return nil
}

// checkMarkers makes sure that the markers are what makeMarkers made: of that
// user, no symbolic links, nobody else's to change.
func checkMarkers(session string, owner int) error {
	for name, mode := range map[string]fs.FileMode{
		fingerprint.Dir(session):   fs.ModeDir | 0o700,
		fingerprint.Allow(session): 0o600,
		fingerprint.Deny(session):  0o600,
	} {
		st, err := os.Lstat(name)
		if err != nil {
			return err
		}
		sys, ok := st.Sys().(*syscall.Stat_t)
		if !ok || int(sys.Uid) != owner || st.Mode() != mode {
			return fmt.Errorf("%s: %w", name, errForeign)
		}
	}
	return nil
}

// removeMarkers removes what makeMarkers made, and nothing else: a directory
// that is not the owner's stays, and so does one that something else lies in.
func removeMarkers(session string, owner int) error {
	st, err := os.Lstat(fingerprint.Dir(session))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); !ok || int(sys.Uid) != owner || !st.IsDir() {
		return fmt.Errorf("%s: %w", fingerprint.Dir(session), errForeign)
	}
	for _, name := range []string{fingerprint.Allow(session), fingerprint.Deny(session), fingerprint.Dir(session)} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the session's markers: %w", err)
		}
	}
	return nil
}
