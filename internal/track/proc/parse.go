package proc

import (
	"encoding/binary"
	"errors"
	"strings"
)

// parseProcArgs parses what sysctl(3) kern.procargs2 returns for a process on macOS: the number
// of arguments in 32 bits, the program's path, zero bytes up to a boundary, the arguments, each
// with a zero byte, and the environment, which it ignores.
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
