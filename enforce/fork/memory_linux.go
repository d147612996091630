package fork

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is memory for what the Args of Steps point to. It lies outside of the
// Go heap, which a new process has not. It is given back by the Command's Cleanup.
type Memory struct {
	rest   []byte   // what is left of the last piece
	pieces [][]byte // as mapped
	err    error    // there is no more: what was asked for lies on the heap, and nothing can be started
}

// memoryPiece is how much is asked of the kernel at once, in bytes. What is
// not touched costs nothing.
const memoryPiece = 64 << 10

// Memory gives the command's memory for Steps.
func (c *Command) Memory() *Memory {
	if c.memory == nil {
		c.memory = &Memory{}
		c.Cleanup = append(c.Cleanup, c.memory.free)
	}
	return c.memory
}

// Put puts a copy of v into m. What v points to must be in m too.
func Put[T any](m *Memory, v T) *T {
	p := (*T)(m.room(unsafe.Sizeof(v)))
	*p = v
	return p
}

// Text puts a copy of s, ended by a NUL, into m.
func (m *Memory) Text(s string) *byte {
	p := (*byte)(m.room(uintptr(len(s)) + 1))
	copy(unsafe.Slice(p, len(s)), s)
	return p
}

// PutSlice puts a copy of s into m.
func PutSlice[T any](m *Memory, s []T) []T {
	if len(s) == 0 {
		return nil
	}
	all := unsafe.Slice((*T)(m.room(uintptr(len(s))*unsafe.Sizeof(s[0]))), len(s))
	copy(all, s)
	return all
}

// room gives zeroed memory, aligned for whatever goes there.
func (m *Memory) room(size uintptr) unsafe.Pointer {
	size = (size + 15) &^ 15
	if uintptr(len(m.rest)) < size {
		piece, err := unix.Mmap(-1, 0, int(max(memoryPiece, size)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			m.err = fmt.Errorf("memory for the new processes: %w", err)
			return unsafe.Pointer(&make([]uint64, size/8)[0])
		}
		m.pieces, m.rest = append(m.pieces, piece), piece
	}
	p := unsafe.Pointer(&m.rest[0])
	m.rest = m.rest[size:]
	return p
}

func (m *Memory) free() {
	for _, piece := range m.pieces {
		_ = unix.Munmap(piece)
	}
	*m = Memory{}
}
