package cgroup

import "fmt"

// Limits bound what all processes of a session have together, by a control
// group (cgroups(7), version 2) of the session's own, whatever tracks it. The
// keeper is not in it. The zero value bounds nothing. They hold only for a
// command that is confined: another one owns its group and can lift them.
type Limits struct {
	Memory int64 // bytes, of which none go to swap; 0 for no limit
	Pids   int64 // processes and threads at a time
	CPU    int64 // thousandths of one processor's time
}

// cpuPeriod is the time in which a limit of processors is kept, in microseconds:
// the kernel's default.
const cpuPeriod = 100_000

// setting is a file of a control group and what bounds it.
type setting struct {
	file, text string
	controller string
	property   string // of a systemd unit, a number: org.freedesktop.systemd1(5)
	value      uint64
	optional   bool // the file is missing where there is nothing to bound
}

// settings are what the limits are to the kernel.
func (l Limits) settings() []setting {
	var out []setting
	if l.Memory > 0 {
		out = append(out, setting{"memory.max", fmt.Sprint(l.Memory), "memory", "MemoryMax", uint64(l.Memory), false},
			setting{"memory.swap.max", "0", "memory", "MemorySwapMax", 0, true}) // no swap in this kernel, or not accounted
	}
	if l.Pids > 0 {
		out = append(out, setting{"pids.max", fmt.Sprint(l.Pids), "pids", "TasksMax", uint64(l.Pids), false})
	}
	if l.CPU > 0 {
		out = append(out, setting{"cpu.max", fmt.Sprint(l.CPU*cpuPeriod/1000, cpuPeriod), "cpu", "CPUQuotaPerSecUSec", uint64(l.CPU) * 1000, false})
	}
	return out
}
