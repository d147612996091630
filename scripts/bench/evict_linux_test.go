package bench

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// evict takes a file out of the page cache.
func evict(f *os.File) {
	must(unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
	if n := cached(f); n > 0 {
		panic(fmt.Errorf("%d pages of %s stay in the page cache: TMPDIR must be on a disk", n, f.Name()))
	}
}

// cached returns how many pages of a file are in the page cache (mincore(2)).
func cached(f *os.File) (n int) {
	size := int(get(f.Stat()).Size())
	text := get(unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED))
	defer unix.Munmap(text)
	pages := make([]byte, (size+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&text[0])), uintptr(size), uintptr(unsafe.Pointer(&pages[0])))
	if errno != 0 {
		panic(errno)
	}
	for _, in := range pages {
		n += int(in & 1)
	}
	return n
}
