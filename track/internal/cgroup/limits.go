package cgroup

import (
	"fmt"
	"slices"
)

// Limits bound what all processes of a session have together, by a control
// group (cgroups(7), version 2) of the session's own, whatever tracks it. The
// keeper is not in it. The zero value bounds nothing. They hold only for a
// command that is confined: another one owns its group and can lift them.
type Limits struct {
	Memory int64 // bytes, of which none go to swap; 0 for no limit
	Pids   int64 // processes and threads at a time
	CPU    int64 // thousandths of one processor's time
}

// setting is a file of a control group and what bounds it.
type setting struct {
	file, text string
	controller string
	property   string // of a systemd unit, a number: org.freedesktop.systemd1(5)
	value      uint64
	optional   bool // the file is missing where there is nothing to bound
}

// settings are what the limits are to the kernel. The period in which that of processors
// is kept is the kernel's default, 0.1 s.
func (l Limits) settings() []setting {
	limited := map[string]bool{"memory": l.Memory > 0, "pids": l.Pids > 0, "cpu": l.CPU > 0}
	return slices.DeleteFunc([]setting{
		{"memory.max", fmt.Sprint(l.Memory), "memory", "MemoryMax", uint64(l.Memory), false},
		{"memory.swap.max", "0", "memory", "MemorySwapMax", 0, true}, // no swap in this kernel, or not accounted
		{"pids.max", fmt.Sprint(l.Pids), "pids", "TasksMax", uint64(l.Pids), false},
		{"cpu.max", fmt.Sprint(l.CPU * 100), "cpu", "CPUQuotaPerSecUSec", uint64(l.CPU) * 1000, false},
	}, func(s setting) bool { return !limited[s.controller] })
}
