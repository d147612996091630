package proc

import (
	"encoding/binary"
	"errors"
	"strings"
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
	_, rest, ok := strings.Cut(string(b[4:]), "\x00")
	if n < 0 || !ok {
		return nil, errors.New("no program")
	}
	args := strings.SplitN(strings.TrimLeft(rest, "\x00"), "\x00", n+1)
	if len(args) <= n {
		return nil, errors.New("fewer arguments than were announced")
	}
	return args[:n], nil
}
