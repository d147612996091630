package procfs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Mount is one line of proc_pid_mountinfo(5).
type Mount struct {
	ID    string // of the mount
	Dev   string // of the file system, as MAJOR:MINOR
	Root  string // the directory of the file system that is mounted
	Point string // where
	Type  string // of the file system
}

// Mounts parses mountinfo. Lines that are no mounts are left out. A later mount is on top
// of an earlier one at the same place. Every start of a command calls this function, so
// it avoids garbage.
func Mounts(text string) []Mount {
	all := make([]Mount, 0, strings.Count(text, "\n")+1)
	for line := range strings.Lines(text) {
		var f [6]string
		rest := line
		ok := true
		for i := range f {
			f[i], rest, ok = strings.Cut(rest, " ")
			if !ok {
				break
			}
		}
		if _, kind, sep := strings.Cut(rest, "- "); ok && sep {
			kind, _, _ = strings.Cut(kind, " ")
			all = append(all, Mount{ID: f[0], Dev: f[2], Root: unescape(f[3]), Point: unescape(f[4]), Type: kind})
		}
	}
	return all
}

// unescape undoes the kernel's escapes of blanks and backslashes.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Stat is the part of proc_pid_stat(5) that zsbx needs.
type Stat struct {
	Pid     int
	Name    string // 15 bytes at most
	State   string // one letter, as ps(1) shows it
	Parent  int
	Group   int
	Session int
	Threads int
	Start   uint64 // clock ticks since boot
}

// ParseStat parses a stat file:
//
//	1 pid  2 (comm)  3 state  4 ppid  5 pgrp  6 session ... 20 num_threads ... 22 starttime
//
// The name may contain spaces and parentheses; the fields after it can't.
func ParseStat(b []byte) (Stat, error) {
	open := bytes.IndexByte(b, '(')
	end := bytes.LastIndexByte(b, ')')
	if open < 1 || end < open {
		return Stat{}, errors.New("no name in parentheses")
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 {
		return Stat{}, fmt.Errorf("%d fields after the name, 20 are needed", len(f))
	}
	var err error
	num := func(text []byte) int {
		n, e := strconv.Atoi(string(text))
		err = cmp.Or(err, e)
		return n
	}
	s := Stat{
		Pid: num(bytes.TrimSpace(b[:open])), Name: string(b[open+1 : end]), State: string(f[0]),
		Parent: num(f[1]), Group: num(f[2]), Session: num(f[3]), Threads: num(f[17]), Start: uint64(num(f[19])),
	}
	return s, err
}

// Status parses proc_pid_status(5): the fields of each line by its key.
func Status(text string) map[string][]string {
	m := make(map[string][]string, 64)
	for line := range strings.Lines(text) {
		key, rest, _ := strings.Cut(line, ":")
		m[key] = strings.Fields(rest)
	}
	return m
}
