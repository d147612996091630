package fork

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is memory for what the Args of Steps point to. It is outside the Go heap, which a new
// process lacks. The Command's Cleanup frees it.
type Memory struct {
	rest   []byte   // the unused part of the last piece
	pieces [][]byte // as mapped
	err    error    // memory ran out: something was put on the heap, so nothing can be started
}

// memoryPiece is how many bytes are requested from the kernel at once. Unused pages cost
// nothing.
const memoryPiece = 64 << 10

// Memory returns the command's memory for Steps.
func (c *Command) Memory() *Memory {
	if c.memory == nil {
		c.memory = &Memory{}
		c.Cleanup = append(c.Cleanup, c.memory.free)
	}
	return c.memory
}

// Put puts a copy of v into m. What v points to must be in m, too.
func Put[T any](m *Memory, v T) *T {
	p := (*T)(m.room(unsafe.Sizeof(v)))
	*p = v
	return p
}

// Text puts a copy of s, with a NUL at its end, into m.
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

// room returns zeroed memory with an alignment for any type.
func (m *Memory) room(size uintptr) unsafe.Pointer {
	size = (size + 15) &^ 15
	if uintptr(len(m.rest)) < size {
		length := int(max(memoryPiece, size))
		piece, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			m.err = fmt.Errorf("memory for the new processes: %w", err)
			return unsafe.Pointer(&make([]uint64, size/8)[0])
		}
		m.pieces = append(m.pieces, piece)
		m.rest = piece
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
