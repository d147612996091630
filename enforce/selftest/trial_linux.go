package selftest

import (
	"encoding/binary"
	"path"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zsbx/zsbx/enforce/fork"
)

// memory is for what the arguments of steps point to. It is never given back: a
// process tests itself once.
var memory fork.Memory

// put puts v there, and gives the address.
func put[T any](v T) uintptr { return uintptr(unsafe.Pointer(fork.Put(&memory, v))) }

// text puts a string there.
func text(s string) uintptr { return uintptr(unsafe.Pointer(memory.Text(s))) }

// call is a system call as a step.
func call(name string, nr uintptr, args ...uintptr) fork.Step {
	s := fork.Step{Name: name, Nr: nr}
	copy(s.Args[:], args)
	return s
}

// at is AT_FDCWD as an argument.
const at = ^uintptr(99)

func opening(file string, flags uintptr) fork.Step {
	return call("openat(2) "+path.Base(file), unix.SYS_OPENAT, at, text(file), flags)
}

func socket(name string, family, kind uintptr) fork.Step {
	return call(name, unix.SYS_SOCKET, family, kind)
}

// connectUnix connects a new socket to a path, or to an abstract name after an "@".
func connectUnix(what, name string) []fork.Step {
	addr := binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX)
	if abstract, ok := strings.CutPrefix(name, "@"); ok {
		addr = append(append(addr, 0), abstract...)
	} else {
		addr = append(append(addr, name...), 0)
	}
	to := uintptr(unsafe.Pointer(&fork.PutSlice(&memory, addr)[0]))
	return []fork.Step{
		socket("socket(2)", unix.AF_UNIX, unix.SOCK_STREAM),
		call("connect(2) to "+what, unix.SYS_CONNECT, 0, to, uintptr(len(addr))),
	}
}
