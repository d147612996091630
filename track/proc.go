package track

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/zsbx/zsbx/internal/procfs"
)

// Proc is a living process, as far as it can be seen from outside.
type Proc struct {
	ProcID
	Parent  int      `json:"ppid"`
	Group   int      `json:"pgrp"`
	Session int      `json:"sid"`
	State   string   `json:"state"`          // one letter, as ps(1) shows it
	Name    string   `json:"name"`           // the kernel's name for it, 15 bytes at most
	Argv    []string `json:"argv,omitempty"` // what it says of itself; may be cut or empty
}

// CommandLine is the process's argv for people, or its name in brackets.
func (p Proc) CommandLine(width int) string {
	if len(p.Argv) == 0 {
		return "[" + CommandLine([]string{p.Name}, width) + "]"
	}
	return CommandLine(p.Argv, width)
}

// dead reports whether only the process's table entry is left.
func (p Proc) dead() bool { return p.State == "Z" || p.State == "X" }

// parseStat reads /proc/PID/stat.
func parseStat(b []byte) (Proc, error) {
	s, err := procfs.ParseStat(b)
	return Proc{ProcID: ProcID{Pid: s.Pid, Start: s.Start}, Parent: s.Parent, Group: s.Group, Session: s.Session, State: s.State, Name: s.Name}, err
}

// procStatus is what /proc/PID/status tells of a process (proc_pid_status(5)),
// of any process and to anybody.
type procStatus struct {
	uid     int    // effective
	threads int    //
	blocked uint64 // signals, the first in the lowest bit
	depth   int    // in how many PID namespaces it is, ours included
	inner   int    // its number in the innermost of them
}

// parseStatus reads /proc/PID/status. Only the uid must be there.
func parseStatus(b []byte) (procStatus, error) {
	st := procStatus{uid: -1, depth: 1}
	var err error
	for line := range bytes.Lines(b) {
		key, rest, _ := bytes.Cut(line, []byte(":"))
		f := bytes.Fields(rest)
		switch {
		case string(key) == "Uid" && len(f) >= 2:
			st.uid, err = strconv.Atoi(string(f[1]))
			if err != nil {
				return st, err
			}
		case string(key) == "Threads" && len(f) == 1:
			st.threads, _ = strconv.Atoi(string(f[0]))
		case string(key) == "SigBlk" && len(f) == 1:
			st.blocked, _ = strconv.ParseUint(string(f[0]), 16, 64)
		case string(key) == "NSpid":
			if st.depth = len(f); len(f) > 0 {
				st.inner, _ = strconv.Atoi(string(f[len(f)-1]))
			}
		}
	}
	if st.uid < 0 {
		return st, errors.New("no Uid line")
	}
	return st, nil
}

// splitNul splits what /proc/PID/cmdline and environ hold.
func splitNul(b []byte) []string {
	b = bytes.TrimRight(b, "\x00")
	if len(b) == 0 {
		return nil
	}
	var s []string
	for part := range bytes.SplitSeq(b, []byte{0}) {
		s = append(s, string(part))
	}
	return s
}

// table is a snapshot of the processes.
type table map[int]Proc

// children gives the pids of each parent's children.
func (t table) children() map[int][]int {
	c := make(map[int][]int, len(t))
	for pid, p := range t {
		c[p.Parent] = append(c[p.Parent], pid)
	}
	return c
}

// below lists all descendants of root, without root itself. children comes
// from the same table.
func (t table) below(root int, children map[int][]int) []Proc {
	var out []Proc
	seen := map[int]bool{root: true}
	for todo := []int{root}; len(todo) > 0; {
		next := children[todo[0]]
		todo = todo[1:]
		for _, pid := range next {
			if !seen[pid] { // a snapshot is not of one moment: it may hold a ring
				seen[pid] = true
				out = append(out, t[pid])
				todo = append(todo, pid)
			}
		}
	}
	return out
}

// has reports whether exactly that process is in the table, and alive.
func (t table) has(id ProcID) bool {
	p, ok := t[id.Pid]
	return ok && !id.IsZero() && p.Start == id.Start && !p.dead()
}
