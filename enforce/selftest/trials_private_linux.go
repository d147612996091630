package selftest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce"
	"github.com/zsbx/zsbx/enforce/fork"
	"github.com/zsbx/zsbx/enforce/internal/mounts"
	"github.com/zsbx/zsbx/policy"
)

// privatePaths are the rules of the baseline for the directories that a mount
// namespace makes private.
func privatePaths() []policy.Path {
	var out []policy.Path
	for _, dir := range []string{mounts.ShmDir, mounts.PtsDir} {
		var st unix.Stat_t
		if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
			continue
		}
		out = append(out, policy.Path{Path: dir, Access: policy.Read | policy.Write, Mode: os.ModeDir,
			ID: policy.FileID{Dev: st.Dev, Ino: st.Ino}, Rule: policy.Rule{Path: dir, Origin: policy.Origin{Source: "baseline"}}})
	}
	return out
}

// privateTrials attack what this process has in them, as far as the plan keeps
// it apart.
func (s *linuxScene) privateTrials(mp *mounts.Plan) []trial {
	const promise = "no shared memory, semaphores and message queues of programs outside"
	var out []trial
	id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 1, unix.IPC_CREAT|0o600)
	if mp.IPC && err == nil {
		s.close = append(s.close, func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
		out = append(out, trial{name: enforce.GapIPC, promise: promise + ": System V",
			steps: []fork.Step{call("shmat(2)", unix.SYS_SHMAT, uintptr(id), 0, unix.SHM_RDONLY)}})
	}
	shm := mounts.ShmDir + "/" + filepath.Base(s.dir)
	if hasPrivate(mp, mounts.ShmDir) && os.WriteFile(shm, nil, 0o600) == nil {
		s.close = append(s.close, func() { os.Remove(shm) })
		out = append(out, trial{name: enforce.GapIPC, promise: promise + ": POSIX",
			steps: opening(shm, unix.O_RDONLY)})
	}
	if master, name, err := newTerminal(); hasPrivate(mp, mounts.PtsDir) && err == nil {
		s.close = append(s.close, func() { unix.Close(master) })
		out = append(out, trial{name: enforce.GapTerminals, promise: "no access to the user's other terminals",
			steps: opening(name, unix.O_RDWR|unix.O_NOCTTY)})
	}
	return out
}

// newTerminal makes a pseudo-terminal (pty(7)).
func newTerminal() (master int, name string, err error) {
	if master, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0); err != nil {
		return -1, "", err
	}
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		unix.Close(master)
		return -1, "", err
	}
	return master, fmt.Sprintf("%s/%d", mounts.PtsDir, n), nil
}

func hasPrivate(mp *mounts.Plan, dir string) bool {
	return slices.ContainsFunc(mp.Private, func(d mounts.PrivateDir) bool { return d.Path == dir })
}
