package fork

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Memory is memory for what the Args of Steps point to. It lies outside of the
// Go heap, which a new process has not. It is given back by the Command's Cleanup.
type Memory struct {
	next, end uintptr // what is free of the last piece
	pieces    []piece
	err       error // there is no more: what was asked for lies on the heap, and nothing can be started
}

type piece struct{ base, size uintptr }

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
	t := unsafe.Slice((*T)(m.room(uintptr(len(s))*unsafe.Sizeof(s[0]))), len(s))
	copy(t, s)
	return t
}

// room gives zeroed memory, aligned for whatever goes there.
func (m *Memory) room(size uintptr) unsafe.Pointer {
	size = (size + 15) &^ 15
	if m.end-m.next < size {
		n := max(memoryPiece, (size+4095)&^4095)
		p, err := unix.MmapPtr(-1, 0, nil, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			m.err = fmt.Errorf("memory for the new processes: %w", err)
			return unsafe.Pointer(&make([]uint64, size/8)[0])
		}
		m.pieces = append(m.pieces, piece{uintptr(p), n})
		m.next, m.end = uintptr(p), uintptr(p)+n
	}
	at := m.next
	m.next += size
	return pointer(at)
}

// stackSize is the size of a new process's stack, in bytes. Raw functions need less
// than two kilobytes in all: the linker checks them, but for what sweepAll says.
const stackSize = 8 << 10

// stack gives where a new stack ends: it grows downwards.
func (m *Memory) stack() uintptr { return uintptr(m.room(stackSize)) + stackSize }

// pointer is an address outside of the Go heap as a pointer.
func pointer(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// keep has free give nothing back.
func (m *Memory) keep() {
	if m != nil {
		m.pieces = nil
	}
}

func (m *Memory) free() {
	for _, p := range m.pieces {
		unix.MunmapPtr(pointer(p.base), p.size)
	}
	*m = Memory{}
}
