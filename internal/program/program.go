// Package program reads from the head of a program which file execve(2) opens beside it:
// the interpreter of a script, or the loader of a dynamic ELF program. It is for every
// system, and decides nothing.
package program

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
)

// headSize is how many bytes of a script the kernel reads to find its interpreter
// (BINPRM_BUF_SIZE). longestPath is Linux's PATH_MAX. elfMagic begins an ELF program.
const (
	headSize    = 256
	longestPath = 4096
	elfMagic    = "\x7fELF"
)

// Depth is how many interpreters execve(2) follows from script to script.
const Depth = 5

// Interpreter returns the file that a program names, without its argument, and whether
// that is an ELF loader. It is "" if there is none, or if the program can't be read.
func Interpreter(f io.ReaderAt) (name string, loader bool) {
	b := head(f)
	if script, ok := bytes.CutPrefix(b, []byte("#!")); ok {
		line, _, _ := bytes.Cut(script, []byte("\n"))
		name = strings.TrimLeft(string(line), " \t")
		if i := strings.IndexAny(name, " \t"); i >= 0 {
			name = name[:i]
		}
		return name, false
	}
	return loaderOf(f, b)
}

// loaderOf returns what an ELF program of this machine names in its header PT_INTERP, see
// elf(5). Package debug/elf would initialise at every start what only debuggers need.
func loaderOf(f io.ReaderAt, head []byte) (name string, found bool) {
	const class32, typeInterp = 1, 3
	if len(head) < 64 || !bytes.HasPrefix(head, []byte(elfMagic)) {
		return "", false
	}
	// Where an Elf64_Ehdr has e_phoff and e_phnum, the size of an Elf64_Phdr, and where
	// that has p_offset and p_filesz.
	table := 32
	count := 56
	entry := 56
	offset := 8
	size := 32
	word := func(b []byte) int64 { return int64(binary.NativeEndian.Uint64(b)) }
	if head[4] == class32 {
		table = 28
		count = 44
		entry = 32
		offset = 4
		size = 16
		word = func(b []byte) int64 { return int64(binary.NativeEndian.Uint32(b)) }
	}
	headers := make([]byte, int(binary.NativeEndian.Uint16(head[count:]))*entry)
	if _, err := f.ReadAt(headers, word(head[table:])); err != nil {
		return "", false
	}
	for p := range slices.Chunk(headers, entry) {
		if n := word(p[size:]); binary.NativeEndian.Uint32(p) == typeInterp && 0 < n && n < longestPath {
			b := make([]byte, n)
			_, err := f.ReadAt(b, word(p[offset:]))
			return strings.TrimRight(string(b), "\x00"), err == nil
		}
	}
	return "", false
}

// IsText reports whether execvp(3) would hand a file to /bin/sh after ENOEXEC, because it
// is not an ELF program.
func IsText(f io.ReaderAt) bool {
	b := head(f)
	return !bytes.HasPrefix(b, []byte(elfMagic)) && bytes.IndexByte(b, 0) < 0
}

// head reads the beginning of a file.
func head(f io.ReaderAt) []byte {
	b := make([]byte, headSize)
	n, _ := f.ReadAt(b, 0)
	return b[:n]
}
