package attack_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// processActs act on the process whose number is the first argument.
func processActs() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"kill":       func(a []string) error { return unix.Kill(num(a[0]), signalOf(a)) },
		"kill-group": func(a []string) error { return unix.Kill(-num(a[0]), signalOf(a)) },
		"tgkill":     func(a []string) error { return unix.Tgkill(num(a[0]), num(a[0]), signalOf(a)) },
		"tkill":      func(a []string) error { return raw(unix.SYS_TKILL, uintptr(num(a[0])), uintptr(signalOf(a))) },
		"kill-high": func(a []string) error {
			return raw(unix.SYS_KILL, uintptr(num(a[0]))|1<<32, uintptr(signalOf(a))|1<<32)
		},
		"tgsigqueue": tgsigqueue,
		"sigqueue":   sigqueue,
		"pidfd":      func(a []string) error { return pidfdSignal(a, nil) },
		"pidfd-info": func(a []string) error { return pidfdSignal(a, &unix.Siginfo{Signo: int32(signalOf(a)), Code: -1}) },
		"ptrace":     ptrace,
		"vm-read":    vmRead,
		"mem":        func(a []string) error { return open("/proc/"+a[0]+"/mem", unix.O_RDONLY) },
		"environ":    func(a []string) error { return open("/proc/"+a[0]+"/environ", unix.O_RDONLY) },
		"root":       func(a []string) error { return open("/proc/"+a[0]+"/root/"+a[1], unix.O_RDONLY) },
		"oom":        func(a []string) error { return open("/proc/"+a[0]+"/oom_score_adj", unix.O_WRONLY) },
		"prlimit":    prlimit,
		"prlimit-ro": func(a []string) error { var l unix.Rlimit; return unix.Prlimit(num(a[0]), unix.RLIMIT_NOFILE, nil, &l) },
		"affinity":   affinity,
		"scheduler": func(a []string) error {
			return raw(unix.SYS_SCHED_SETSCHEDULER, uintptr(num(a[0])), unix.SCHED_BATCH, uintptr(unsafe.Pointer(new(int32))))
		},
		"schedattr": func(a []string) error {
			return unix.SchedSetAttr(num(a[0]), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: 19}, 0) // a lower one needs CAP_SYS_NICE
		},
		// The priority for 19 is never higher than the tests' own, so it needs no privilege.
		"nice":       func(a []string) error { return unix.Setpriority(unix.PRIO_PROCESS, num(a[0]), 19) },
		"nice-group": func(a []string) error { return unix.Setpriority(unix.PRIO_PGRP, num(a[0]), 19) },
		"ionice":     func(a []string) error { return raw(unix.SYS_IOPRIO_SET, 1, uintptr(num(a[0])), 3<<13) },
		"become":     become,
		"limit-all":  limitAll,
		"own":        ownChild,
		"own-ptrace": ownPtrace,
		"threads":    threads,
		"nested":     nested,
	}
}

// limitAll makes an act on a process: "child", "everybody" or a number. EBADMSG means that
// everybody's answers are not as they should be: only that for the keeper is EPERM.
func limitAll(a []string) error {
	act, whose := processActs()[a[0]], a[1]
	switch whose {
	case "child":
		c := exec.Command("/bin/sleep", "60")
		if err := c.Start(); err != nil {
			return err
		}
		defer c.Wait()
		defer c.Process.Kill()
		return act([]string{strconv.Itoa(c.Process.Pid)})
	case "everybody":
		for pid := 1; pid < 1000; pid++ {
			if err := act([]string{strconv.Itoa(pid)}); (err == unix.EPERM) != (pid == 1) || err != nil && err != unix.EPERM && err != unix.ESRCH {
				return fmt.Errorf("%d: %w", pid, unix.EBADMSG)
			}
		}
		return nil
	}
	return act([]string{whose})
}

// become prints what each call that changes users or groups answers to many arguments.
func become([]string) error {
	runtime.LockOSThread()
	const keep = ^uintptr(0)
	for _, c := range []struct {
		name string
		nr   uintptr
		id   int
		args int
	}{
		{"setuid", unix.SYS_SETUID, os.Getuid(), 1}, {"setreuid", unix.SYS_SETREUID, os.Getuid(), 2}, {"setresuid", unix.SYS_SETRESUID, os.Getuid(), 3},
		{"setgid", unix.SYS_SETGID, os.Getgid(), 1}, {"setregid", unix.SYS_SETREGID, os.Getgid(), 2}, {"setresgid", unix.SYS_SETRESGID, os.Getgid(), 3},
		{"setfsuid", unix.SYS_SETFSUID, os.Getuid(), 1}, {"setfsgid", unix.SYS_SETFSGID, os.Getgid(), 1},
	} {
		ids := []uintptr{keep, uintptr(c.id), uintptr(c.id + 1), 0, 65534}
		for n := range len(ids) * len(ids) * len(ids) {
			args := [3]uintptr{ids[n%5], ids[n/5%5], ids[n/25]}
			if c.args < 3 && args[2] != keep || c.args < 2 && args[1] != keep {
				continue
			}
			_, _, errno := unix.RawSyscall(c.nr, args[0], args[1], args[2])
			fmt.Println(c.name, args, unix.ErrnoName(errno))
		}
	}
	fmt.Println("setgroups", unix.ErrnoName(raw(unix.SYS_SETGROUPS, 0, 0).(unix.Errno)))
	return nil
}

func sigqueue(a []string) error {
	info := [128]byte{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff} // si_code SI_QUEUE, -1
	pid := uintptr(num(a[0]))
	return raw(unix.SYS_RT_SIGQUEUEINFO, pid, uintptr(signalOf(a)), uintptr(unsafe.Pointer(&info)))
}

func tgsigqueue(a []string) error {
	info := [128]byte{8: 0xff, 9: 0xff, 10: 0xff, 11: 0xff}
	pid := uintptr(num(a[0]))
	return raw(unix.SYS_RT_TGSIGQUEUEINFO, pid, pid, uintptr(signalOf(a)), uintptr(unsafe.Pointer(&info)))
}

// signalOf returns the signal in the second argument, or one that does nothing.
func signalOf(a []string) unix.Signal {
	if len(a) > 1 {
		return unix.Signal(num(a[1]))
	}
	return unix.SIGURG
}

func pidfdSignal(a []string, info *unix.Siginfo) error {
	fd, err := unix.PidfdOpen(num(a[0]), 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.PidfdSendSignal(fd, signalOf(a), info, 0)
}

func ptrace(a []string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.PtraceSeize(num(a[0])); err != nil {
		return err
	}
	return nil
}

func vmRead(a []string) error {
	var b [1]byte
	local := []unix.Iovec{{Base: &b[0], Len: 1}}
	// Any address will do, since the kernel first checks whether the caller may read.
	_, err := unix.ProcessVMReadv(num(a[0]), local, []unix.RemoteIovec{{Base: 4096, Len: 1}}, 0)
	if err == unix.EFAULT {
		return nil
	}
	return err
}

// prlimit sets a limit to its present value.
func prlimit(a []string) error {
	var l unix.Rlimit
	if err := unix.Prlimit(num(a[0]), unix.RLIMIT_CORE, nil, &l); err != nil {
		return err
	}
	return unix.Prlimit(num(a[0]), unix.RLIMIT_CORE, &l, nil)
}

func affinity(a []string) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	return unix.SchedSetaffinity(num(a[0]), &set)
}

// ownChild signals, stops, continues and kills its own child.
func ownChild([]string) error {
	c := exec.Command("/bin/sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		return err
	}
	defer c.Wait()
	pid := c.Process.Pid
	return then(
		func() error { return unix.Kill(pid, unix.SIGSTOP) },
		func() error { return unix.Kill(pid, unix.SIGCONT) },
		func() error { return unix.Kill(-pid, unix.SIGKILL) })
}

// ownPtrace starts a traced child, as a debugger does.
func ownPtrace([]string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return err
	}
	if _, err := p.Wait(); err != nil {
		return err
	}
	var regs unix.PtraceRegs
	if err := unix.PtraceGetRegs(p.Pid, &regs); err != nil {
		return fmt.Errorf("registers: %w", err)
	}
	return unix.PtraceDetach(p.Pid)
}

// threads starts some threads and lets each send itself a signal.
func threads([]string) error {
	errs := make(chan error)
	for range 4 {
		go func() {
			runtime.LockOSThread()
			errs <- unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGURG)
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}
