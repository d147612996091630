package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/zsbx/zsbx/internal/procfs"
)

// parseStat reads proc_pid_stat(5).
func parseStat(b []byte) (Process, error) {
	s, err := procfs.ParseStat(b)
	return Process{ID: ID{Pid: s.Pid, Start: s.Start}, Parent: s.Parent, Group: s.Group, Session: s.Session, State: s.State, Name: s.Name}, err
}

// Status is what proc_pid_status(5) tells of any process to anybody.
type Status struct {
	UID     int    // effective
	Threads int    //
	Blocked uint64 // signals, the first in the lowest bit
	Depth   int    // in how many PID namespaces it is, the caller's included
	Inner   int    // its number in the innermost of them
}

// parseStatus reads proc_pid_status(5). Only the uid must be there.
func parseStatus(b []byte) (Status, error) {
	st := Status{UID: -1, Depth: 1}
	for line := range bytes.Lines(b) {
		key, rest, _ := bytes.Cut(line, []byte(":"))
		f := bytes.Fields(rest)
		if len(f) == 0 {
			continue
		}
		switch string(key) {
		case "Uid":
			if len(f) < 2 {
				break
			}
			if uid, err := strconv.Atoi(string(f[1])); err == nil {
				st.UID = uid
			}
		case "Threads":
			st.Threads, _ = strconv.Atoi(string(f[0]))
		case "SigBlk":
			st.Blocked, _ = strconv.ParseUint(string(f[0]), 16, 64)
		case "NSpid":
			st.Depth = len(f)
			st.Inner, _ = strconv.Atoi(string(f[len(f)-1]))
		}
	}
	if st.UID < 0 {
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

// parseProcArgs reads what sysctl(3) kern.procargs2 gives of a process on
// macOS: the number of arguments as a 32-bit number, the path of the program,
// zero bytes up to a boundary, the arguments, each with a zero byte, and then
// the environment, which is left alone.
func parseProcArgs(b []byte) ([]string, error) {
	if len(b) < 4 {
		return nil, errors.New("no number of arguments")
	}
	n := int(int32(binary.NativeEndian.Uint32(b)))
	b = b[4:]
	end := bytes.IndexByte(b, 0)
	if n < 0 || end < 0 {
		return nil, errors.New("no program")
	}
	b = bytes.TrimLeft(b[end:], "\x00")
	var args []string
	for len(args) < n {
		arg, rest, ok := bytes.Cut(b, []byte{0})
		if !ok {
			return args, errors.New("fewer arguments than were announced")
		}
		args = append(args, string(arg))
		b = rest
	}
	return args, nil
}
