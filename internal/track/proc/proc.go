package proc

// ID identifies one process until the machine restarts.
type ID struct {
	Pid int `json:"pid"`

	// Start is the start time in clock ticks since boot, field 22 of proc_pid_stat(5). On macOS
	// it is in microseconds since 1970.
	Start uint64 `json:"start"`
}

// IsZero reports whether p is no process.
func (p ID) IsZero() bool { return p.Pid == 0 }

// Identify returns the ID of a process that runs now. For 0 it returns the zero ID.
func Identify(pid int) (ID, error) {
	if pid == 0 {
		return ID{}, nil
	}
	p, err := Look(pid)
	return p.ID, err
}

// Machine says where a process is, which makes its ID unique. In a record's JSON it is about
// the session's supervisor.
type Machine struct {
	Host       string `json:"host"`   // nodename, uname(2)
	Boot       string `json:"boot"`   // the machine's run: /proc/sys/kernel/random/boot_id, kern.bootsessionuuid
	PidNS      uint64 `json:"pid_ns"` // inode of the PID namespace; 0 on systems without them
	Supervisor ID     `json:"supervisor"`
}

// Process has what can be seen of a process from outside.
type Process struct {
	ID
	Parent  int      `json:"ppid"`
	Group   int      `json:"pgrp"`
	Session int      `json:"sid"`
	State   string   `json:"state"`          // one letter, as in ps(1)
	Name    string   `json:"name"`           // the kernel's name for it, 15 bytes at most
	Argv    []string `json:"argv,omitempty"` // set only by Fill; the process can change it; may be cut or empty
}

// Dead reports whether only the process's entry in the table is left.
func (p Process) Dead() bool { return p.State == "Z" || p.State == "X" }

// Stopped reports whether the process can't fork, because it was stopped or is dead.
func (p Process) Stopped() bool { return p.State == "T" || p.State == "t" || p.Dead() }

// MaxBytes is how much of a command line CutArgs keeps.
const MaxBytes = 4 << 10

// CutArgs returns the arguments up to MaxBytes, counting one byte for the end of each.
func CutArgs(argv []string) []string {
	left := MaxBytes
	for i, a := range argv {
		left -= len(a) + 1
		if left < 0 {
			return append(argv[:i:i], a[:max(0, len(a)+1+left)])
		}
	}
	return argv
}

// Table is a snapshot of the processes. It is not atomic.
type Table struct {
	Procs    map[int]Process
	children map[int][]int
}

// Children returns the pids of a process's children.
func (t *Table) Children(pid int) []int {
	if t.children == nil {
		t.children = make(map[int][]int, len(t.Procs))
		for pid, p := range t.Procs {
			t.children[p.Parent] = append(t.children[p.Parent], pid)
		}
	}
	return t.children[pid]
}

// Below returns all descendants of root, without root itself.
func (t *Table) Below(root int) []Process {
	var out []Process
	seen := map[int]bool{root: true}
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		for _, pid := range t.Children(todo[0]) {
			if !seen[pid] { // a snapshot may have a cycle
				seen[pid] = true
				out = append(out, t.Procs[pid])
				todo = append(todo, pid)
			}
		}
	}
	return out
}

// Has reports whether exactly that process is in the table and alive.
func (t *Table) Has(id ID) bool {
	p, ok := t.Procs[id.Pid]
	return ok && !id.IsZero() && p.Start == id.Start && !p.Dead()
}
