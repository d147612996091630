package track

import (
	"bytes"
	"encoding/binary"
	"errors"
)

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

// stateLetter is the letter that ps(1) shows for a p_stat of sys/proc.h.
func stateLetter(stat int8) string {
	const (
		idle    = 1 + iota // SIDL: being made
		running            // SRUN
		sleeping
		stopped
		zombie // SZOMB
	)
	switch stat {
	case idle:
		return "I"
	case running:
		return "R"
	case sleeping:
		return "S"
	case stopped:
		return "T"
	case zombie:
		return "Z"
	}
	return "?"
}
