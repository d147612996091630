package proc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Here says where this process is.
func Here() (m Machine, err error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return m, fmt.Errorf("uname: %w", err)
	}
	m.Host = unix.ByteSliceToString(u.Nodename[:])
	m.Boot, err = unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return m, fmt.Errorf("sysctl kern.bootsessionuuid: %w", err)
	}
	m.Supervisor, err = Identify(os.Getpid())
	return m, err
}

// Look looks at one process. It returns ESRCH if there is none: sysctl(3) then returns nothing,
// which x/sys turns into EIO.
func Look(pid int) (Process, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.EIO) || err == nil && int(k.Proc.P_pid) != pid {
		return Process{}, unix.ESRCH
	}
	if err != nil {
		return Process{}, fmt.Errorf("sysctl kern.proc.pid %d: %w", pid, err)
	}
	return of(k), nil
}

// Snapshot lists the processes that can belong to a session of this user: those with the same
// effective user, since no set-uid program can be executed under a profile. For root it lists
// all. The kernel makes the list one process at a time.
func Snapshot() (*Table, error) {
	var ks []unix.KinfoProc
	var err error
	if uid := os.Geteuid(); uid != 0 {
		ks, err = unix.SysctlKinfoProcSlice("kern.proc.uid", uid)
	} else {
		ks, err = unix.SysctlKinfoProcSlice("kern.proc.all")
	}
	if err != nil {
		return nil, fmt.Errorf("sysctl kern.proc: %w", err)
	}
	t := &Table{Procs: make(map[int]Process, len(ks))}
	for i := range ks {
		p := of(&ks[i])
		t.Procs[p.Pid] = p
	}
	return t, nil
}

// of converts a struct kinfo_proc (sys/sysctl.h). That has no session.
func of(k *unix.KinfoProc) Process {
	start := k.Proc.P_starttime
	p := Process{
		ID:     ID{Pid: int(k.Proc.P_pid), Start: uint64(start.Sec)*1e6 + uint64(start.Usec)},
		Parent: int(k.Eproc.Ppid), Group: int(k.Eproc.Pgid), State: "?",
		Name: unix.ByteSliceToString(k.Proc.P_comm[:]),
	}
	const letters = "?IRSTZ" // SIDL, SRUN, SSLEEP, SSTOP, SZOMB: sys/proc.h
	if n := int(k.Proc.P_stat); n > 0 && n < len(letters) {
		p.State = letters[n : n+1]
	}
	return p
}

// Fill adds the arguments that the processes show.
func Fill(ps []Process) {
	for i := range ps {
		if b, err := unix.SysctlRaw("kern.procargs2", ps[i].Pid); err == nil {
			ps[i].Argv, _ = parseProcArgs(b)
		}
	}
}
