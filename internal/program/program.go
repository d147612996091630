// Package program reads in the head of a program what execve(2) opens beside it: the
// interpreter of a script, the loader of a dynamic ELF program. It reads and judges
// nothing else, on every system.
package program

import (
	"bytes"
	"debug/elf"
	"io"
	"strings"
)

// headSize is how much of a script the kernel reads to find its interpreter
// (BINPRM_BUF_SIZE), longestPath PATH_MAX of Linux, in bytes.
const (
	headSize    = 256
	longestPath = 4096
)

// Depth is how many interpreters execve(2) follows from script to script.
const Depth = 5

// Interpreter is what a program names, without its argument, and whether that is an
// ELF loader; "" for nothing, or what can't be read.
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
	e, err := elf.NewFile(f)
	if err != nil {
		return "", false
	}
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < longestPath {
			b := make([]byte, p.Filesz)
			if _, err := p.ReadAt(b, 0); err != nil {
				break
			}
			return strings.TrimRight(string(b), "\x00"), true
		}
	}
	return "", false
}

// IsText reports whether a file is what execvp(3) hands to /bin/sh after ENOEXEC: one
// that is no ELF program.
func IsText(f io.ReaderAt) bool {
	b := head(f)
	return !bytes.HasPrefix(b, []byte(elf.ELFMAG)) && bytes.IndexByte(b, 0) < 0
}

// head reads the beginning of a file.
func head(f io.ReaderAt) []byte {
	b := make([]byte, headSize)
	n, _ := f.ReadAt(b, 0)
	return b[:n]
}
