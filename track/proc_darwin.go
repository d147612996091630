package track

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// machine names this machine and its present run.
func machine() (host, boot string, ns uint64, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", "", 0, fmt.Errorf("uname: %w", err)
	}
	if boot, err = unix.Sysctl("kern.bootsessionuuid"); err != nil {
		return "", "", 0, fmt.Errorf("sysctl kern.bootsessionuuid: %w", err)
	}
	return unix.ByteSliceToString(u.Nodename[:]), boot, 0, nil
}

// identify gives a process its start time.
func identify(pid int) (ProcID, error) {
	if pid == 0 {
		return ProcID{}, nil
	}
	r, err := lookup(pid)
	return ProcID(r.ID), err
}

// readProc describes one process.
func readProc(pid int) (Proc, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return Proc{}, fmt.Errorf("sysctl kern.proc.pid %d: %w", pid, err)
	}
	return procOf(k), nil
}

// procOf describes a process for people.
func procOf(k *unix.KinfoProc) Proc {
	r := rowOf(k)
	p := Proc{ProcID: ProcID(r.ID), Parent: r.Parent, Group: r.Group, State: stateLetter(k.Proc.P_stat)}
	p.Name = unix.ByteSliceToString(k.Proc.P_comm[:])
	if b, err := unix.SysctlRaw("kern.procargs2", r.Pid); err == nil {
		p.Argv, _ = parseProcArgs(b)
	}
	return p
}
